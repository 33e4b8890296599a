// Policies in JetStream KV, one per organization, watched into memory. An organization without a
// record has the defaults.
import { isDeepStrictEqual } from 'node:util';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { orgKey } from '../../../schemas/records/org.ts';
import { changedPolicy, DEFAULT_POLICY, type Policy, type PolicyChange } from '../../../schemas/records/policy.ts';

export class PolicyStore {
  readonly #bucket: WatchedBucket<Policy>;

  private constructor(bucket: WatchedBucket<Policy>) {
    this.#bucket = bucket;
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<PolicyStore> {
    return new PolicyStore(await watch(log, 'policies', onProblem));
  }

  get(org_id: string): Policy {
    return this.#bucket.get(orgKey(org_id)) ?? DEFAULT_POLICY;
  }

  /** @returns the policy before and after the change @throws Error when it cannot be written */
  async change(org_id: string, change: PolicyChange): Promise<{ before: Policy; after: Policy }> {
    // The last call belongs to the write that succeeded.
    let before = DEFAULT_POLICY;
    const after = await this.#bucket.change(orgKey(org_id), (held) => {
      before = held ?? DEFAULT_POLICY;
      const next = changedPolicy(before, change);
      return isDeepStrictEqual(before, next) ? null : next;
    });
    return { before, after: after ?? before };
  }

  close(): void {
    this.#bucket.close();
  }
}
