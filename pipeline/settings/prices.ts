// Model prices of organizations as the pipeline reads them: from memory for every event, kept
// current by a watch.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { NO_PRICES } from '../../schemas/records/prices.ts';
import type { OrgPrices } from '../domain/pricing/pricing.ts';

export interface Prices {
  /** Returns an organization's own prices: the same array until they change. */
  of: OrgPrices;
  close: () => void;
}

/** Opens the prices. Resolves once all present ones are loaded. */
export async function openPrices(log: Log, onProblem: ReportProblem): Promise<Prices> {
  const bucket = await watch(log, 'prices', onProblem);
  return {
    of: (org_id) => (bucket.get(orgKey(org_id)) ?? NO_PRICES).prices,
    close: () => {
      bucket.close();
    },
  };
}
