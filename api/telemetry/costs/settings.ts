// The custom prices of organizations and their anomaly settings: two buckets of JetStream KV,
// watched into memory. An organization without a record has the defaults.
import { isDeepStrictEqual } from 'node:util';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
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

  static async open(log: Log, onProblem: ReportProblem): Promise<CostSettings> {
    return new CostSettings(await watch(log, 'prices', onProblem), await watch(log, 'cost_configs', onProblem));
  }

  pricesOf(org_id: string): Prices {
    return this.#prices.get(orgKey(org_id)) ?? NO_PRICES;
  }

  /** Replaces the list of prices. @throws ApiError upstream_unavailable */
  async setPrices(org_id: string, prices: Prices): Promise<{ before: Prices }> {
    // The last call belongs to the write that succeeded.
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
  throw new ApiError('upstream_unavailable', 'The store of cost settings cannot be written. Try again.', { cause });
}
