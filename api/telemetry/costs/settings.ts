// An org's own prices, and how its costs are watched: two buckets of JetStream KV, watched into memory. An org that has set
// nothing has the defaults.
import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import {
  type AnomalyConfig,
  type AnomalyConfigChange,
  changedAnomalyConfig,
  DEFAULT_ANOMALY_CONFIG,
} from '../../../schemas/records/cost_config.ts';
import { orgKey } from '../../../schemas/records/org.ts';
import { NO_PRICES, type Prices } from '../../../schemas/records/prices.ts';
import { ApiError } from '../../http/errors.ts';

export class CostSettings {
  readonly #prices: WatchedBucket<Prices>;
  readonly #configs: WatchedBucket<AnomalyConfig>;

  private constructor(prices: WatchedBucket<Prices>, configs: WatchedBucket<AnomalyConfig>) {
    this.#prices = prices;
    this.#configs = configs;
  }

  static async open(log: Log, onProblem: (problem: string, cause: unknown) => void): Promise<CostSettings> {
    return new CostSettings(await watch(log, 'prices', onProblem), await watch(log, 'cost_configs', onProblem));
  }

  pricesOf(org_id: string): Prices {
    return this.#prices.get(orgKey(org_id)) ?? NO_PRICES;
  }

  /** Puts a list of prices in the place of the one that is there. @throws ApiError upstream_unavailable */
  async setPrices(org_id: string, prices: Prices): Promise<{ before: Prices }> {
    // The last run is the one whose list was written.
    let before = NO_PRICES;
    await this.#prices
      .change(orgKey(org_id), (held) => {
        before = held ?? NO_PRICES;
        return isDeepStrictEqual(before, prices) ? null : prices;
      })
      .catch(storeAway);
    return { before };
  }

  anomalyConfigOf(org_id: string): AnomalyConfig {
    return this.#configs.get(orgKey(org_id)) ?? DEFAULT_ANOMALY_CONFIG;
  }

  /** @throws ApiError upstream_unavailable */
  async changeAnomalyConfig(
    org_id: string,
    change: AnomalyConfigChange,
  ): Promise<{ before: AnomalyConfig; after: AnomalyConfig }> {
    let before = DEFAULT_ANOMALY_CONFIG;
    const after = await this.#configs
      .change(orgKey(org_id), (held) => {
        before = held ?? DEFAULT_ANOMALY_CONFIG;
        const next = changedAnomalyConfig(before, change);
        return isDeepStrictEqual(before, next) ? null : next;
      })
      .catch(storeAway);
    return { before, after: after ?? before };
  }

  close(): void {
    this.#prices.close();
    this.#configs.close();
  }
}

function storeAway(cause: unknown): never {
  throw new ApiError('upstream_unavailable', 'The store of cost settings cannot be written to. Try again.', { cause });
}
