// PII policies in JetStream KV, one per organization, watched into memory. An organization without
// a record has the default policy.
import { isDeepStrictEqual } from 'node:util';
import { randomBytes } from 'node:crypto';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Sealer } from '../../../ops/platform/sealing.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { PiiRedactor } from '../../../pipeline/domain/pii/pii.ts';
import { IN_PLACE, type OwnBounds } from '../../../pipeline/domain/pii/own_patterns.ts';
import { orgKey } from '../../../schemas/records/org.ts';
import {
  changedPiiPolicy,
  DEFAULT_PII_POLICY,
  hashKeyContext,
  type PiiPolicy,
  type PiiPolicyChange,
  type PiiRecord,
} from '../../../schemas/records/pii_policy.ts';
import { ApiError } from '../../http/errors.ts';

const HASH_KEY_BYTES = 32;

export class PiiPolicyStore {
  readonly #bucket: WatchedBucket<PiiRecord>;
  readonly #boundsOf: (org_id: string) => OwnBounds;
  readonly #redactors = new WeakMap<PiiPolicy, PiiRedactor>();

  private constructor(bucket: WatchedBucket<PiiRecord>, boundsOf: (org_id: string) => OwnBounds) {
    this.#bucket = bucket;
    this.#boundsOf = boundsOf;
  }

  /**
   * @param boundsOf returns the bounds on the custom patterns of an organization; IN_PLACE by
   * default
   */
  static async open(
    log: Log,
    onProblem: ReportProblem,
    boundsOf: (org_id: string) => OwnBounds = () => IN_PLACE,
  ): Promise<PiiPolicyStore> {
    return new PiiPolicyStore(await watch(log, 'pii_policies', onProblem), boundsOf);
  }

  get(org_id: string): PiiPolicy {
    return shown(this.#bucket.get(orgKey(org_id)));
  }

  /**
   * Returns the redactor for exports: the kinds and patterns of the organization, whether or not
   * its events are redacted. It always replaces by label, never by hash, so that an export does not
   * reveal which values were equal.
   */
  exporter(org_id: string): PiiRedactor {
    // The redactor is cached by record. Organizations without a record have no patterns, so they
    // can share one whatever their bounds.
    const held = this.#bucket.get(orgKey(org_id)) ?? DEFAULT_PII_POLICY;
    let redactor = this.#redactors.get(held);
    if (redactor === undefined) {
      redactor = new PiiRedactor({ ...held, hash_key: null, bounds: this.#boundsOf(org_id) });
      this.#redactors.set(held, redactor);
    }
    return redactor;
  }

  /**
   * Returns the redactor that shows what a policy would replace: by label in either mode, and whether
   * or not the policy is enabled.
   */
  tester(org_id: string, { kinds, custom }: PiiPolicy): PiiRedactor {
    return new PiiRedactor({ kinds, custom, hash_key: null, bounds: this.#boundsOf(org_id) });
  }

  /**
   * @param sealer seals the key of the organization's hashes, which is generated when the mode
   * `hash` is first set
   * @returns the policy before and after the change
   * @throws ApiError upstream_unavailable
   */
  async change(
    org_id: string,
    change: PiiPolicyChange,
    sealer: Sealer,
  ): Promise<{ before: PiiPolicy; after: PiiPolicy }> {
    // The last call belongs to the write that succeeded.
    let before = DEFAULT_PII_POLICY;
    const record = await this.#bucket
      .change(orgKey(org_id), (held) => {
        before = shown(held);
        const after = changedPiiPolicy(before, change);
        if (isDeepStrictEqual(before, after)) return null;
        const needsKey = after.mode === 'hash' && (held?.hash_key ?? null) === null;
        const made = needsKey
          ? sealer.seal(randomBytes(HASH_KEY_BYTES).toString('base64'), hashKeyContext(org_id))
          : null;
        return { ...after, hash_key: made ?? held?.hash_key ?? null };
      })
      .catch((cause: unknown) => {
        throw new ApiError('upstream_unavailable', 'The store of PII policies cannot be written. Try again.', {
          cause,
        });
      });
    return { before, after: shown(record) };
  }

  close(): void {
    this.#bucket.close();
  }
}

/** Returns the policy without its hash key. */
function shown(record: PiiRecord | undefined): PiiPolicy {
  if (record === undefined) return DEFAULT_PII_POLICY;
  const { enabled, kinds, custom, mode } = record;
  return { enabled, kinds, custom, mode };
}
