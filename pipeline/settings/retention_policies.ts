// Retention policies of orgs: from memory for what lands, and from the bucket itself for a run of the job.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { orgKey, orgOfKey } from '../../schemas/records/org.ts';
import { DEFAULT_RETENTION, parseRetention, type RetentionPolicy } from '../../schemas/records/retention.ts';
import { DEFAULT_POLICY, parsePolicy } from '../../schemas/records/policy.ts';
import type { OrgPolicy } from '../domain/traces/retention.ts';

export interface RetentionPolicies {
  /** What holds for an org now. */
  of: (org_id: string) => RetentionPolicy;
  close: () => void;
}

/** Resolves when every policy there is has been loaded. */
export async function openRetentionPolicies(
  log: Log,
  onProblem: (problem: string, cause: unknown) => void,
): Promise<RetentionPolicies> {
  const bucket = await open(log, onProblem);
  return {
    of: (org_id) => bucket.get(orgKey(org_id)) ?? DEFAULT_RETENTION,
    close: () => {
      bucket.close();
    },
  };
}

/** All policies, with the periods of budgets, as the buckets hold them now. @throws Error when one cannot be read: what it says must not be guessed */
export async function readRetentionPolicies(log: Log): Promise<OrgPolicy[]> {
  const problems: unknown[] = [];
  const onProblem = (_problem: string, cause: unknown) => problems.push(cause);
  const retention = await open(log, onProblem);
  const kv = await log.bucket('policies');
  const policies = await WatchedBucket.open(log.nc, kv, { name: 'policies', parse: parsePolicy, onProblem });
  try {
    if (problems.length > 0) throw new Error('a policy of an organization cannot be read', { cause: problems[0] });
    return [...retention.entries()].map(([key, { value }]) => ({
      org_id: orgOfKey(key),
      policy: value,
      budget: policies.get(key) ?? DEFAULT_POLICY,
    }));
  } finally {
    retention.close();
    policies.close();
  }
}

async function open(
  log: Log,
  onProblem: (problem: string, cause: unknown) => void,
): Promise<WatchedBucket<RetentionPolicy>> {
  const kv = await log.bucket('retention_policies');
  return WatchedBucket.open(log.nc, kv, { name: 'retention_policies', parse: parseRetention, onProblem });
}
