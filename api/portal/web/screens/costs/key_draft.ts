// The limits of an API key as people type them. Pure. Days are UTC.
import type { components } from '../../client/contract.d.ts';
import { parseLimit, parseLimitOf } from './amounts.ts';

export type KeyLimits = Pick<
  components['schemas']['ApiKey'],
  'models' | 'requests_per_minute' | 'tokens_per_minute' | 'budget' | 'expires_at' | 'labels' | 'capture'
>;

export const KEY_RESOURCES = ['cost_usd', 'tokens'] as const;
export const KEY_PERIODS = ['day', 'week', 'month'] as const;

export interface KeyDraft {
  models: string;
  requests: string;
  tokens: string;
  resource: (typeof KEY_RESOURCES)[number];
  limit: string;
  period: (typeof KEY_PERIODS)[number];
  /** Last day of the key, YYYY-MM-DD; empty for a key without an expiry. */
  until: string;
  user_id: string;
  department: string;
  capture: KeyLimits['capture'];
}

const DAY_MS = 86_400_000;
const written = (limit: number | null | undefined): string =>
  limit === null || limit === undefined ? '' : String(limit);

/** Returns the last day on which a key that expires at an instant works. */
const lastDay = (expires_at: string): string => new Date(Date.parse(expires_at) - 1).toISOString().slice(0, 10);

export function draftOf({
  models,
  requests_per_minute,
  tokens_per_minute,
  budget,
  expires_at,
  labels,
  capture,
}: KeyLimits): KeyDraft {
  return {
    models: (models ?? []).join(', '),
    requests: written(requests_per_minute),
    tokens: written(tokens_per_minute),
    resource: budget?.resource ?? 'cost_usd',
    limit: written(budget?.hard_limit),
    period: budget?.period ?? 'month',
    until: expires_at === null ? '' : lastDay(expires_at),
    user_id: labels?.user_id ?? '',
    department: labels?.department ?? '',
    capture,
  };
}

/** Returns when a key ends whose last day was typed. A day that is unchanged keeps its exact end. */
function endOf(day: string, before: string | null): string | null {
  if (day === '') return null;
  if (before !== null && day === lastDay(before)) return before;
  return new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString();
}

/** Returns the limits of a draft; the name of the field that is no limit in place of them. */
export function limitsOf(draft: KeyDraft, before: KeyLimits): KeyLimits | { wrong: keyof KeyDraft } {
  const requests = parseLimit(draft.requests);
  if (requests === undefined) return { wrong: 'requests' };
  const tokens = parseLimit(draft.tokens);
  if (tokens === undefined) return { wrong: 'tokens' };
  const limit = parseLimitOf(draft.resource, draft.limit);
  if (limit === undefined) return { wrong: 'limit' };
  const models = draft.models
    .split(',')
    .map((model) => model.trim())
    .filter((model) => model !== '');
  const [user_id, department] = [draft.user_id.trim(), draft.department.trim()];
  return {
    models: models.length === 0 ? null : models,
    requests_per_minute: requests,
    tokens_per_minute: tokens,
    budget: limit === null ? null : { resource: draft.resource, hard_limit: limit, period: draft.period },
    expires_at: endOf(draft.until, before.expires_at),
    labels:
      user_id === '' && department === ''
        ? null
        : { user_id: user_id === '' ? null : user_id, department: department === '' ? null : department },
    capture: draft.capture,
  };
}
