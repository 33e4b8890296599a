// Deletes an organization's entries in KV. The table of buckets declares how the entries of each
// bucket name their organization; a bucket without that does not compile.
//
// Every process that watches a bucket sees each deletion, because the keys are deleted one by one
// first. The delete markers, whose keys name the organization, are purged in a second step, after
// every watch had time to receive them.
import type { KV } from '@nats-io/kv';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { type BucketName, BUCKETS, type Tenancy } from '../../schemas/buckets.ts';
import { nameDigest, orgTenantToken } from '../../ops/platform/tenant_token.ts';
import { agentOrgToken } from '../../schemas/records/agent.ts';
import { orgKey } from '../../schemas/records/org.ts';

/** Returns the first token of an organization's keys; null where keys do not begin with the organization. */
function firstToken(tenancy: Tenancy, org_id: string): string | null {
  if (tenancy === 'key' || tenancy === 'key_or_field' || tenancy === 'organization') return orgKey(org_id);
  if (tenancy === 'encoded_key') return agentOrgToken(org_id);
  return tenancy === 'digest_key' ? orgTenantToken(org_id) : null;
}

export class OrgBuckets {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Deletes every key of the organization except its own record.
   * @returns how many there were
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

  /**
   * Removes the markers that deletions have left. Markers whose key is a hash name no organization
   * and stay.
   */
  async eraseMarks(org_id: string): Promise<void> {
    for (const name of Object.keys(BUCKETS) as BucketName[]) {
      const token = firstToken(BUCKETS[name].tenancy, org_id);
      if (token === null) continue;
      for (const filter of [`$KV.${name}.${token}`, `$KV.${name}.${token}.>`])
        await this.#log.jsm.streams.purge(`KV_${name}`, { filter });
    }
  }
}

/** Returns the organization's keys that have a value. */
async function keysOf(kv: KV, tenancy: Tenancy, org_id: string): Promise<string[]> {
  const token = firstToken(tenancy, org_id);
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
 * Returns the keys of stored answers to the operator that show the organization: its creation, and
 * its changes.
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
