// PII policies in JetStream KV by org, watched into memory; an org that has set nothing has the default.
import { isDeepStrictEqual } from 'node:util';
import { randomBytes } from 'node:crypto';
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

  /** @param boundsOf what bounds the own patterns of an org; IN_PLACE unless given */
  static async open(
    log: Log,
    onProblem: (problem: string, cause: unknown) => void,
    boundsOf: (org_id: string) => OwnBounds = () => IN_PLACE,
  ): Promise<PiiPolicyStore> {
    return new PiiPolicyStore(await watch(log, 'pii_policies', onProblem), boundsOf);
  }

  get(org_id: string): PiiPolicy {
    return shown(this.#bucket.get(orgKey(org_id)));
  }

  /**
   * What an export is anonymised with: the kinds and patterns of the org, whether or not its events are redacted. Always by labels
   * alone: what leaves the service tells nobody which values were equal.
   */
  exporter(org_id: string): PiiRedactor {
    // The bounds are the org's own; orgs that have set nothing look for no patterns and share one.
    const held = this.#bucket.get(orgKey(org_id)) ?? DEFAULT_PII_POLICY;
    let redactor = this.#redactors.get(held);
    if (redactor === undefined) {
      redactor = new PiiRedactor({ ...held, hash_key: null, bounds: this.#boundsOf(org_id) });
      this.#redactors.set(held, redactor);
    }
    return redactor;
  }

  /**
   * @param sealer seals the key of the org's hashes, which is made when they are first asked for
   * @returns the policy that was changed, and what it became
   * @throws ApiError upstream_unavailable
   */
  async change(
    org_id: string,
    change: PiiPolicyChange,
    sealer: Sealer,
  ): Promise<{ before: PiiPolicy; after: PiiPolicy }> {
    // The last run is the one whose policy was written.
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
        throw new ApiError('upstream_unavailable', 'The store of PII policies cannot be written to. Try again.', {
          cause,
        });
      });
    return { before, after: shown(record) };
  }

  close(): void {
    this.#bucket.close();
  }
}

/** Without the key. */
function shown(record: PiiRecord | undefined): PiiPolicy {
  if (record === undefined) return DEFAULT_PII_POLICY;
  const { enabled, kinds, custom, mode } = record;
  return { enabled, kinds, custom, mode };
}
