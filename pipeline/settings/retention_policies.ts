// Retention policies of organizations: from memory for landings, and from the bucket itself for a
// run of the retention job.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { orgKey, orgOfKey } from '../../schemas/records/org.ts';
import { DEFAULT_RETENTION, type RetentionPolicy } from '../../schemas/records/retention.ts';
import { DEFAULT_POLICY } from '../../schemas/records/policy.ts';
import type { OrgPolicy } from '../domain/traces/retention.ts';

export interface RetentionPolicies {
  /** Returns the current policy of an organization. */
  of: (org_id: string) => RetentionPolicy;
  close: () => void;
}

/** Opens the policies. Resolves once every present one is loaded. */
export async function openRetentionPolicies(log: Log, onProblem: ReportProblem): Promise<RetentionPolicies> {
  const bucket = await watch(log, 'retention_policies', onProblem);
  return {
    of: (org_id) => bucket.get(orgKey(org_id)) ?? DEFAULT_RETENTION,
    close: () => {
      bucket.close();
    },
  };
}

/**
 * Reads all retention policies, with the period rules of budgets, as the buckets hold them now.
 * @throws Error when a policy cannot be read, because its retention must not be guessed
 */
export async function readRetentionPolicies(log: Log): Promise<OrgPolicy[]> {
  const problems: unknown[] = [];
  const onProblem = (_problem: string, cause: unknown) => problems.push(cause);
  const retention = await watch(log, 'retention_policies', onProblem);
  const policies = await watch(log, 'policies', onProblem);
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
