// Policies of organizations as the pipeline reads them: from memory for every event, kept current
// by a watch.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { DEFAULT_POLICY, type Policy } from '../../schemas/records/policy.ts';

export interface Policies {
  /** Returns the current policy of an organization. */
  of: (org_id: string) => Policy;
  close: () => void;
}

/** Opens the policies. Resolves once every present one is loaded. */
export async function openPolicies(log: Log, onProblem: ReportProblem): Promise<Policies> {
  const bucket = await watch(log, 'policies', onProblem);
  return {
    of: (org_id) => bucket.get(orgKey(org_id)) ?? DEFAULT_POLICY,
    close: () => {
      bucket.close();
    },
  };
}
