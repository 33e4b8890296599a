// Policies of orgs as the pipeline asks for them: read from memory for every event, kept current by a watch.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { DEFAULT_POLICY, type Policy } from '../../schemas/records/policy.ts';

export interface Policies {
  /** What holds for an org now. */
  of: (org_id: string) => Policy;
  close: () => void;
}

/** Resolves when every policy there is has been loaded. */
export async function openPolicies(log: Log, onProblem: ReportProblem): Promise<Policies> {
  const bucket = await watch(log, 'policies', onProblem);
  return {
    of: (org_id) => bucket.get(orgKey(org_id)) ?? DEFAULT_POLICY,
    close: () => {
      bucket.close();
    },
  };
}
