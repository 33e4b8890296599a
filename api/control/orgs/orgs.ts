// Creates and changes organizations and API keys. A new key has at most the permissions of its
// creator; its raw text is returned once and stored nowhere.
import { randomBytes, randomUUID } from 'node:crypto';
import type { OrgDeletions } from '../../../ops/exchange/org_deletions.ts';
import { RevisionConflict } from '../../../ops/platform/nats/watched_bucket.ts';
import { limitsOfPlan } from '../../admission/rate/plans.ts';
import { hashKey, KEY_PREFIX } from '../../http/auth.ts';
import { activeMember, memberSince, type OrgRecord, ownerOf } from '../../../schemas/records/org.ts';
import { touched } from '../../http/changes.ts';
import { may, type OperatorCredential, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { type KeyLimits, type KeyRecord, NO_KEY_LIMITS, type Scope } from '../../../schemas/records/api_key.ts';
import { beyondKey, beyondRole } from '../../http/permissions.ts';
import { replaceOwner } from './membership.ts';
import { checkMayLimit, givenLimits } from './key_limit_rules.ts';
import type { CreatedKey, CreateKeyBody } from './key_schema.ts';
import type { CreateOrgBody, OrgItem, OrgView, PatchOrgBody } from './schema.ts';
import type { KeyStore, OrgStore } from './store.ts';

/**
 * Maximum keys of one organization that are not revoked. Several processes that create keys at once
 * may exceed it slightly.
 */
export const API_KEYS_ORG_MAX = 1000;
const KEY_PREFIX_LENGTH = 12;
const RAW_KEY_BYTES = 30;

export interface OrgsDeps {
  orgs: OrgStore;
  keys: KeyStore;
  deletions: Pick<OrgDeletions, 'get'>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** @throws ApiError org_not_found */
export function getOrg(deps: OrgsDeps, org_id: string): OrgRecord {
  const org = deps.orgs.get(org_id);
  if (org === null) throw new ApiError('org_not_found', `There is no organization ${org_id}.`);
  return org;
}

/** Returns the organization as the operator sees it. */
export function orgItemOf(org: OrgRecord): OrgItem {
  const { plan_name, overage_budget_usd, rate_limits } = org;
  return { ...publicPartOf(org), plan_name, overage_budget_usd, rate_limits };
}

/** Returns the organization as its members and keys see it. @throws ApiError org_not_found */
export function viewOrg(deps: OrgsDeps, credential: OrgCredential): OrgView {
  const org = getOrg(deps, credential.org_id);
  if (!may(credential, 'billing:view')) return publicPartOf(org);
  return { ...orgItemOf(org), effective_rate_limits: limitsOfPlan(org) };
}

function publicPartOf(org: OrgRecord): OrgView {
  const { org_id, name, created_at, updated_at } = org;
  const { user_id, email } = ownerOf(org);
  return { org_id, name, owner: { user_id, email }, created_at, updated_at };
}

/**
 * @throws ApiError conflict when the id is in use or its organization is being deleted,
 * invalid_request when the plan does not allow own limits
 */
export async function createOrg(deps: OrgsDeps, body: CreateOrgBody): Promise<OrgItem> {
  const at = new Date(deps.now()).toISOString();
  const org: OrgRecord = {
    org_id: body.org_id ?? `org_${randomUUID().replaceAll('-', '').slice(0, 20)}`,
    name: body.name,
    plan_name: body.plan_name,
    overage_budget_usd: body.overage_budget_usd ?? null,
    rate_limits: body.rate_limits ?? null,
    created_at: at,
    updated_at: at,
    members: [activeMember(body.owner, 'owner', at)],
    transfer: null,
  };
  checkPlan(org);
  const deletion = deps.deletions.get(org.org_id);
  if (deletion?.state === 'running')
    throw new ApiError(
      'conflict',
      `The organization ${org.org_id} is being deleted by the job ${deletion.job_id}. Wait for the job to end.`,
    );
  try {
    await deps.orgs.create(org);
  } catch (error) {
    if (error instanceof RevisionConflict)
      throw new ApiError('conflict', `The organization ${org.org_id} already exists.`, { cause: error });
    throw storeUnavailable(error);
  }
  return orgItemOf(org);
}

/**
 * Changes the given fields; null clears an optional one. A new owner replaces the first owner, who
 * becomes an admin. An organization that leaves the plan enterprise loses its own limits.
 *
 * @returns the organization before and after
 * @throws ApiError org_not_found, invalid_request
 */
export async function changeOrg(
  deps: OrgsDeps,
  org_id: string,
  body: PatchOrgBody,
): Promise<{ before: OrgItem; after: OrgItem }> {
  const { owner, ...fields } = body;
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  const { before, org } = await changeRecord(deps, org_id, (before) => {
    const at = deps.now();
    const changed: OrgRecord = { ...before, ...given };
    // Own limits belong to the plan. Limits that the request itself sets with another plan are
    // rejected below.
    if (body.rate_limits === undefined && changed.plan_name !== 'enterprise') changed.rate_limits = null;
    checkPlan(changed);
    return { before, org: touched(before, owner === undefined ? changed : replaceOwner(changed, owner, at), at) };
  });
  return { before: orgItemOf(before), after: orgItemOf(org) };
}

/**
 * Applies a rule to the newest record of an organization.
 *
 * @throws ApiError org_not_found, upstream_unavailable, or what the rule throws
 */
export async function changeRecord<R extends { org: OrgRecord }>(
  deps: OrgsDeps,
  org_id: string,
  apply: (org: OrgRecord) => R,
): Promise<R> {
  const changed = await deps.orgs.change(org_id, apply).catch((error: unknown) => {
    throw error instanceof ApiError ? error : storeUnavailable(error);
  });
  if (changed === null) throw new ApiError('org_not_found', `There is no organization ${org_id}.`);
  return changed;
}

function checkPlan(org: Pick<OrgRecord, 'plan_name' | 'rate_limits'>): void {
  if (org.rate_limits !== null && org.plan_name !== 'enterprise')
    throw new ApiError('invalid_request', 'rate_limits: requires the plan enterprise');
}

/**
 * Creates a key. Its raw text is in the response only. The key belongs to the member who creates
 * it, or to the member behind the key that creates it.
 *
 * @throws ApiError org_not_found; forbidden when the creator lacks one of the scopes; conflict when
 * the organization has the maximum number of keys
 */
export async function createKey(
  deps: OrgsDeps,
  org_id: string,
  body: CreateKeyBody,
  maker: OrgCredential | OperatorCredential,
): Promise<CreatedKey> {
  if (maker.kind === 'operator') getOrg(deps, org_id);
  checkMayLimit(maker);
  const limits = givenLimits(body);
  const scopes = [...new Set(body.scopes)];
  const missing = scopesLacking(maker, scopes);
  if (missing.length > 0)
    throw new ApiError(
      'forbidden',
      `A key can have at most the permissions of its creator; the credential lacks ${missing.join(', ')}.`,
    );
  const created_by = makerOf(deps, org_id, maker);
  if (deps.keys.list(org_id).filter((key) => deps.keys.statusOf(key) !== 'revoked').length >= API_KEYS_ORG_MAX)
    throw new ApiError('conflict', `An organization has at most ${API_KEYS_ORG_MAX} API keys. Revoke one first.`);
  const raw_key = KEY_PREFIX + randomBytes(RAW_KEY_BYTES).toString('base64url');
  const record = keyRecordOf(raw_key, {
    org_id,
    name: body.name,
    scopes,
    now: deps.now(),
    created_by,
    limits,
    ...(body.capture === undefined ? {} : { capture: body.capture }),
  });
  try {
    await deps.keys.create(hashKey(raw_key), record);
  } catch (error) {
    throw storeUnavailable(error);
  }
  const { id, name, key_prefix } = record;
  return { id, name, key_prefix, scopes, raw_key, ...limits };
}

/** Returns the scopes that the creator of a key lacks. */
function scopesLacking(maker: OrgCredential | OperatorCredential, scopes: readonly Scope[]): Scope[] {
  if (maker.kind === 'operator') return [];
  if (maker.kind === 'user') return beyondRole(maker.role, scopes);
  const beyond = new Set([
    ...beyondKey(maker.scopes, scopes),
    ...(maker.maker === undefined ? [] : beyondRole(maker.maker.role, scopes)),
  ]);
  return [...beyond];
}

/** Returns the member to whom a new key belongs; null for a key that no member creates. */
function makerOf(
  { orgs }: OrgsDeps,
  org_id: string,
  maker: OrgCredential | OperatorCredential,
): KeyRecord['created_by'] {
  if (maker.kind === 'operator') return null;
  if (maker.kind === 'api_key') {
    const behind = maker.maker;
    return behind === undefined ? null : { user_id: behind.user_id, member_since: behind.member_since };
  }
  const member = orgs.memberOf(org_id, maker.user_id);
  if (member === null) throw new ApiError('forbidden', 'The caller is not a member of this organization.');
  return { user_id: maker.user_id, member_since: memberSince(member) };
}

/** The fields of a key record other than those derived from its raw text. */
interface NewKey extends Pick<KeyRecord, 'org_id' | 'name' | 'scopes' | 'created_by' | 'capture'> {
  /** Milliseconds since the epoch. */
  now: number;
  /** Left out for a key without limits. */
  limits?: Partial<KeyLimits>;
}

/** Returns the record of a raw key. */
export function keyRecordOf(raw: string, of: NewKey): KeyRecord {
  return {
    id: `ak_${randomUUID().replaceAll('-', '')}`,
    org_id: of.org_id,
    name: of.name,
    key_prefix: raw.slice(0, KEY_PREFIX_LENGTH),
    scopes: of.scopes,
    created_at: new Date(of.now).toISOString(),
    created_by: of.created_by,
    ...NO_KEY_LIMITS,
    ...of.limits,
    ...(of.capture === undefined ? {} : { capture: of.capture }),
  };
}

/** Revokes a key: every process rejects it within a second. @throws ApiError api_key_not_found */
export async function revokeKey(deps: OrgsDeps, org_id: string, key_id: string): Promise<void> {
  const removed = await deps.keys.remove(org_id, key_id).catch((error: unknown) => {
    // Another request has revoked the same key.
    if (error instanceof RevisionConflict) return true;
    throw storeUnavailable(error);
  });
  if (!removed) throw new ApiError('api_key_not_found', 'The organization has no API key with this id.');
}

export function storeUnavailable(cause: unknown): ApiError {
  return new ApiError('upstream_unavailable', 'The store of organizations and keys cannot be written. Try again.', {
    cause,
  });
}
