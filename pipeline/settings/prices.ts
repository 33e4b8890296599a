// Orgs' own prices as the pipeline asks for them: read from memory for every event, kept current by a watch.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { NO_PRICES } from '../../schemas/records/prices.ts';
import type { OrgPrices } from '../domain/pricing/pricing.ts';

export interface Prices {
  /** What holds for an org now; the same array for as long as it holds. */
  of: OrgPrices;
  close: () => void;
}

/** Resolves when all prices there are have been loaded. */
export async function openPrices(log: Log, onProblem: ReportProblem): Promise<Prices> {
  const bucket = await watch(log, 'prices', onProblem);
  return {
    of: (org_id) => (bucket.get(orgKey(org_id)) ?? NO_PRICES).prices,
    close: () => {
      bucket.close();
    },
  };
}
