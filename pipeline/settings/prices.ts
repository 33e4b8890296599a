// Orgs' own prices as the pipeline asks for them: read from memory for every event, kept current by a watch.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { NO_PRICES, parsePrices } from '../../schemas/records/prices.ts';
import type { OrgPrices } from '../domain/pricing/pricing.ts';

export interface Prices {
  /** What holds for an org now; the same array for as long as it holds. */
  of: OrgPrices;
  close: () => void;
}

/** Resolves when all prices there are have been loaded. */
export async function openPrices(log: Log, onProblem: (problem: string, cause: unknown) => void): Promise<Prices> {
  const kv = await log.bucket('prices');
  const bucket = await WatchedBucket.open(log.nc, kv, { name: 'prices', parse: parsePrices, onProblem });
  return {
    of: (org_id) => (bucket.get(orgKey(org_id)) ?? NO_PRICES).prices,
    close: () => {
      bucket.close();
    },
  };
}
