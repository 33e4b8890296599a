// The first org and its key, so that a fresh service can be used at once. Safe to run in every process at every start.
import { randomBytes } from 'node:crypto';
import { RevisionConflict } from '../../ops/watched_bucket.ts';
import { activeMember } from '../../schemas/records/org.ts';
import { hashKey, KEY_PREFIX } from '../http/auth.ts';
import { keyRecordOf, type OrgsDeps } from './orgs.ts';

/**
 * Makes the org, on plan enterprise without a rate limit, and its key with scope `*`, where they are missing. A key that was revoked
 * stays revoked; another one is made for another `rawKey`.
 * @param rawKey the key as configured; without one the process that makes the org makes a key as well
 * @throws Error when the configured key is another org's
 * @returns the raw key when this call made one up, to be shown once; else null
 */
export async function bootstrapOrg(deps: OrgsDeps, org_id: string, rawKey: string | undefined): Promise<string | null> {
  const at = new Date(deps.now()).toISOString();
  const madeOrg = await madeHere(
    deps.orgs.create({
      org_id,
      name: org_id,
      plan_name: 'enterprise',
      overage_budget_usd: null,
      rate_limits: null,
      created_at: at,
      updated_at: at,
      members: [activeMember({ user_id: 'user_local', email: 'owner@localhost.localdomain' }, 'owner', at)],
      transfer: null,
    }),
  );
  if (rawKey === undefined && !madeOrg) return null;
  const raw = rawKey ?? KEY_PREFIX + randomBytes(30).toString('base64url');
  const owner = deps.keys.byHash(hashKey(raw))?.credential.org_id;
  if (owner !== undefined && owner !== org_id)
    throw new Error(`SERVICE_BOOTSTRAP_API_KEY: got a key that belongs to the org ${owner}; takes one of ${org_id} or a new one`);
  await madeHere(
    deps.keys.createOnce(hashKey(raw), keyRecordOf(raw, { org_id, name: 'bootstrap', scopes: ['*'], now: deps.now(), created_by: null })),
  );
  return rawKey === undefined ? raw : null;
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
