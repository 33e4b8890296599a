// An organization as the operator types it. Pure.
import type { Org, PLANS } from './orgs_api.ts';

export interface OrgDraft {
  org_id: string;
  name: string;
  plan_name: (typeof PLANS)[number];
  owner_id: string;
  owner_email: string;
  /** USD; empty for none. */
  overage: string;
  ingest: string;
  api: string;
  burst: string;
}

export const EMPTY: OrgDraft = {
  org_id: '',
  name: '',
  plan_name: 'pro',
  owner_id: '',
  owner_email: '',
  overage: '',
  ingest: '',
  api: '',
  burst: '',
};

const written = (value: number | null | undefined): string =>
  value === null || value === undefined ? '' : String(value);

export function draftOf({ org_id, name, plan_name, owner, overage_budget_usd, rate_limits }: Org): OrgDraft {
  return {
    org_id,
    name,
    plan_name,
    owner_id: owner.user_id,
    owner_email: owner.email,
    overage: written(overage_budget_usd),
    ingest: written(rate_limits?.ingest_per_minute),
    api: written(rate_limits?.api_per_minute),
    burst: written(rate_limits?.burst),
  };
}

const numberOf = (text: string): number | null => (text.trim() === '' ? null : Number(text));

/** Fields of the API by the fields of the draft, for the errors of a request. */
export const NAMES: Readonly<Record<keyof OrgDraft, string>> = {
  org_id: 'org_id',
  name: 'name',
  plan_name: 'plan_name',
  owner_id: 'owner.user_id',
  owner_email: 'owner.email',
  overage: 'overage_budget_usd',
  ingest: 'rate_limits.ingest_per_minute',
  api: 'rate_limits.api_per_minute',
  burst: 'rate_limits.burst',
};

/** Returns the first number field whose text is no number of 0 or more; null without one. */
export function wrongNumber(draft: OrgDraft): keyof OrgDraft | null {
  const names = ['overage', 'ingest', 'api', 'burst'] as const;
  return names.find((name) => !(Number(draft[name].trim()) >= 0)) ?? null;
}

/** Returns the fields of the request without the id. Own limits belong to the plan enterprise. */
export function bodyOf({ name, plan_name, owner_id, owner_email, overage, ingest, api, burst }: OrgDraft) {
  const limited = plan_name === 'enterprise' && [ingest, api, burst].some((text) => text.trim() !== '');
  return {
    name: name.trim(),
    plan_name,
    owner: { user_id: owner_id.trim(), email: owner_email.trim() },
    overage_budget_usd: numberOf(overage),
    rate_limits: limited
      ? { ingest_per_minute: Number(ingest), api_per_minute: Number(api), burst: Number(burst) }
      : null,
  };
}
