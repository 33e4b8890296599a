// Creates the first organization and its API key, so that a fresh service can be used at once.
// Every process may run it at every start.
import { randomBytes } from 'node:crypto';
import type { SystemMutation } from '../../../ops/exchange/audit_log.ts';
import { RevisionConflict } from '../../../ops/platform/nats/watched_bucket.ts';
import { activeMember, LOCAL_USER_ID, type OrgRecord } from '../../../schemas/records/org.ts';
import { hashKey, KEY_PREFIX } from '../../http/auth.ts';
import { keyRecordOf, type OrgsDeps } from './orgs.ts';

/** Makes a change on behalf of the service, with its record in the audit log. */
export type RecordMutation = (
  mutation: SystemMutation,
  mutate: () => Promise<Readonly<Record<string, unknown>> | null>,
) => Promise<void>;

/** Actor of the audit records. */
const BY = 'bootstrap';

/**
 * Creates the organization, on the plan enterprise without a rate limit, and its key with the scope
 * `*`, if they are missing. A revoked key stays revoked; another `rawKey` creates another key.
 *
 * @param rawKey the configured key; without one, the process that creates the organization also
 * generates a key
 * @returns the raw key if this call generated one, to be shown once; otherwise null
 * @throws Error when the configured key belongs to another organization
 */
export async function bootstrapOrg(
  deps: OrgsDeps & { record: RecordMutation },
  org_id: string,
  rawKey: string | undefined,
): Promise<string | null> {
  const madeOrg = deps.orgs.get(org_id) === null && (await makeOrg(deps, org_id));
  if (rawKey === undefined && !madeOrg) return null;
  const raw = rawKey ?? KEY_PREFIX + randomBytes(30).toString('base64url');
  const owner = deps.keys.byHash(hashKey(raw))?.credential.org_id;
  if (owner !== undefined && owner !== org_id)
    throw new Error(
      `SERVICE_BOOTSTRAP_API_KEY: got a key that belongs to the organization ${owner}; must be a key of ${org_id} or a new one`,
    );
  if (!(await deps.keys.wasMade(hashKey(raw)))) await makeKey(deps, org_id, raw);
  return rawKey === undefined ? raw : null;
}

/** @returns true if this call created the organization, and no other process did */
async function makeOrg(deps: OrgsDeps & { record: RecordMutation }, org_id: string): Promise<boolean> {
  const at = new Date(deps.now()).toISOString();
  const owner = { user_id: LOCAL_USER_ID, email: 'owner@localhost.localdomain' };
  const org: OrgRecord = {
    org_id,
    name: org_id,
    plan_name: 'enterprise',
    overage_budget_usd: null,
    rate_limits: null,
    created_at: at,
    updated_at: at,
    members: [activeMember(owner, 'owner', at)],
    transfer: null,
  };
  let made = false;
  await deps.record({ org_id, action: 'org.create', target: { type: 'org', id: org_id }, by: BY }, async () => {
    made = await madeHere(deps.orgs.create(org));
    return made ? { name: org.name, plan_name: org.plan_name, owner } : null;
  });
  return made;
}

async function makeKey(deps: OrgsDeps & { record: RecordMutation }, org_id: string, raw: string): Promise<void> {
  const key = keyRecordOf(raw, {
    org_id,
    name: 'bootstrap',
    scopes: ['*'],
    now: deps.now(),
    created_by: null,
  });
  const { id, name, scopes, key_prefix } = key;
  await deps.record({ org_id, action: 'api_key.create', target: { type: 'api_key', id }, by: BY }, async () =>
    (await madeHere(deps.keys.createOnce(hashKey(raw), key))) ? { name, scopes, key_prefix } : null,
  );
}

async function madeHere(creation: Promise<void>): Promise<boolean> {
  try {
    await creation;
    return true;
  } catch (error) {
    if (error instanceof RevisionConflict) return false;
    throw error;
  }
}
