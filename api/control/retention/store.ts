// Retention policies in JetStream KV, one per organization, watched into memory. An organization
// without a record has the defaults.
import { isDeepStrictEqual } from 'node:util';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { orgKey } from '../../../schemas/records/org.ts';
import {
  changedRetention,
  DEFAULT_RETENTION,
  type RetentionChange,
  type RetentionPolicy,
  retentionProblem,
} from '../../../schemas/records/retention.ts';
import { ApiError } from '../../http/errors.ts';

export class RetentionStore {
  readonly #bucket: WatchedBucket<RetentionPolicy>;

  private constructor(bucket: WatchedBucket<RetentionPolicy>) {
    this.#bucket = bucket;
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<RetentionStore> {
    return new RetentionStore(await watch(log, 'retention_policies', onProblem));
  }

  get(org_id: string): RetentionPolicy {
    return this.#bucket.get(orgKey(org_id)) ?? DEFAULT_RETENTION;
  }

  /**
   * @returns the policy before and after the change
   * @throws ApiError invalid_request when the days are out of order, upstream_unavailable
   */
  async change(org_id: string, change: RetentionChange): Promise<{ before: RetentionPolicy; after: RetentionPolicy }> {
    // The last call belongs to the write that succeeded.
    let before = DEFAULT_RETENTION;
    try {
      const after = await this.#bucket.change(orgKey(org_id), (held) => {
        before = held ?? DEFAULT_RETENTION;
        const changed = changedRetention(before, change);
        const problem = retentionProblem(changed);
        if (problem !== null) throw new ApiError('invalid_request', problem);
        return isDeepStrictEqual(before, changed) ? null : changed;
      });
      return { before, after: after ?? before };
    } catch (cause) {
      if (cause instanceof ApiError) throw cause;
      throw new ApiError('upstream_unavailable', 'The policy could not be stored. Try again.', { cause });
    }
  }

  close(): void {
    this.#bucket.close();
  }
}
