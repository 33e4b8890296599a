// KV records of an organization: for each bucket, how its keys are found and deleted. The type
// makes the table complete: a bucket that is added without a line here does not compile.
// Guarantees: every process that watches a bucket sees each deletion, because keys are deleted one
// by one first. The delete markers, which name the organization, are removed in a second step,
// after every process has had time to see them.
import type { KV } from '@nats-io/kv';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { type BucketName, BUCKETS, type Tenancy } from '../../schemas/buckets.ts';
import { nameDigest, orgTenantToken } from '../../ops/platform/tenant_token.ts';
import { agentOrgToken } from '../../schemas/records/agent.ts';
import { orgKey } from '../../schemas/records/org.ts';

/**
 * - org: the first token of a key is the organization's.
 * - agents: likewise, encoded.
 * - tenant: likewise, as the digest by which idempotency names tenants.
 * - value: the record names its organization in org_id; its key does not.
 * - either: like org, and like value for records of an older version.
 * - nothing: the bucket holds nothing of an organization.
 * - last: the record of the organization itself, deleted when nothing else is left.
 * - kept: the service's own record of the deletion.
 */
type How = 'org' | 'agents' | 'tenant' | 'value' | 'either' | 'nothing' | 'last' | 'kept';

const HOW: Readonly<Record<BucketName, How>> = {
  service: 'nothing',
  orgs: 'last',
  org_deletions: 'kept',
  api_keys: 'value',
  partitions: 'nothing',
  idempotency: 'tenant',
  ingest_keys: 'tenant',
  ingest_claims: 'tenant',
  agents: 'agents',
  register_tokens: 'either',
  grants: 'org',
  policies: 'org',
  prices: 'org',
  repricings: 'nothing',
  cost_configs: 'org',
  budgets: 'org',
  budget_states: 'org',
  webhooks: 'org',
  webhook_dead_letters: 'org',
  incidents: 'org',
  judges: 'org',
  judge_versions: 'org',
  judging_marks: 'org',
  judge_quotas: 'org',
  judging_answers: 'org',
  evals: 'org',
  eval_chunks: 'org',
  datasets: 'org',
  dataset_items: 'org',
  prompts: 'org',
  pii_policies: 'org',
  retention_policies: 'org',
  job_records: 'org',
  erase_asks: 'org',
  analysts: 'value',
  jobs: 'nothing',
};

/**
 * Returns the first token of an organization's keys; null where keys do not begin with the
 * organization.
 */
function firstToken(how: How, org_id: string): string | null {
  if (how === 'org' || how === 'either' || how === 'last') return orgKey(org_id);
  if (how === 'agents') return agentOrgToken(org_id);
  return how === 'tenant' ? orgTenantToken(org_id) : null;
}

export class OrgBuckets {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Deletes every key of the organization except its own record.
   * @returns the number of deleted keys
   */
  async erase(org_id: string, signal: AbortSignal): Promise<number> {
    let erased = 0;
    for (const name of Object.keys(BUCKETS) as BucketName[]) {
      signal.throwIfAborted();
      const { tenancy } = BUCKETS[name];
      const kv = await this.#log.bucket(name);
      const keys = tenancy === 'organization' ? [] : await keysOf(kv, tenancy, org_id);
      for (const key of keys) await kv.delete(key);
      erased += keys.length;
    }
    return erased;
  }

  /** Deletes the organization's own record. */
  async eraseOrg(org_id: string): Promise<void> {
    await (await this.#log.bucket('orgs')).delete(orgKey(org_id));
  }

  /** Removes the delete markers. A marker whose key is a hash names no organization and stays. */
  async eraseMarks(org_id: string): Promise<void> {
    for (const name of Object.keys(BUCKETS) as BucketName[]) {
      const token = firstToken(BUCKETS[name].tenancy, org_id);
      if (token === null) continue;
      for (const filter of [`$KV.${name}.${token}`, `$KV.${name}.${token}.>`])
        await this.#log.jsm.streams.purge(`KV_${name}`, { filter });
    }
  }
}

/** Returns the keys of an organization that hold a value. */
async function keysOf(kv: KV, how: How, org_id: string): Promise<string[]> {
  const token = firstToken(how, org_id);
  if (token !== null) {
    const own = [...(await listed(kv, token)), ...(await listed(kv, `${token}.>`))];
    if (tenancy === 'digest_key') return [...own, ...(await answersToOperators(kv, org_id))];
    return tenancy === 'key_or_field' ? [...new Set([...own, ...(await namingOrg(kv, org_id))])] : own;
  }
  return tenancy === 'field' ? namingOrg(kv, org_id) : [];
}

async function listed(kv: KV, filter: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const key of await kv.keys(filter)) keys.push(key);
  return keys;
}

/** Returns the keys of records that name the organization in org_id. */
function namingOrg(kv: KV, org_id: string): Promise<string[]> {
  return matching(kv, '>', (text) => orgIdIn(text) === org_id);
}

/**
 * Returns the keys of idempotent answers to the operator that show the organization: the answer
 * that created it, and those that changed it.
 */
function answersToOperators(kv: KV, org_id: string): Promise<string[]> {
  const shown = JSON.stringify(JSON.stringify(org_id)).slice(1, -1);
  return matching(kv, `${nameDigest('operator')}.>`, (text) => text.includes(shown));
}

async function matching(kv: KV, filter: string, isMeant: (text: string) => boolean): Promise<string[]> {
  const keys: string[] = [];
  for await (const entry of await kv.history({ key: filter }))
    if (entry.operation === 'PUT' && isMeant(entry.string())) keys.push(entry.key);
  return keys;
}

function orgIdIn(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'org_id' in value ? value.org_id : undefined;
  } catch {
    return undefined;
  }
}
