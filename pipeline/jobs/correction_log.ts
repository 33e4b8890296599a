// Ingest log as a repricing uses it: waits until everything accepted has landed, and publishes
// corrections of costs, each to the partition that owns its trace. Takes the changes of a plan in a
// fixed order; resolves when all of them have landed.
import { createHash } from 'node:crypto';
import { headers } from '@nats-io/transport-node';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { readRecord } from '../../ops/platform/nats/watch.ts';
import { partitionKey } from '../../schemas/records/partition.ts';
import { INGEST_STREAM, ingestSubject, MESSAGE_BYTES_MAX, MIXED_SUBJECT } from '../../schemas/streams.ts';
import {
  type CostChange,
  type CostCorrections,
  costCorrectionsCodec,
  FINGERPRINT_HEADER,
} from '../../schemas/codec.ts';
import { partitionOf } from '../domain/traces/ids.ts';
import { pieces } from '../domain/text/pieces.ts';

/**
 * Bounds on the changes of one message. A change is usually a few hundred bytes, and 8 KiB with the
 * longest names in the longest UTF-8.
 */
const MESSAGE_CHANGES = { count: 2000, bytes: MESSAGE_BYTES_MAX - 64 * 1024 };
/** Bytes of the numbers and lengths of a change in its message. */
const CHANGE_FRAME_BYTES = 64;
const PUBLISH_MS_MAX = 10_000;
const LOOK_MS = 200;

/** Message with corrections for one partition. */
export interface CorrectionMessage {
  partition: number;
  corrections: CostCorrections;
}

/** Returns the messages of a plan. The same changes always give the same messages. */
export function correctionMessages(
  plan: { plan_id: string; org_id: string },
  changes: readonly CostChange[],
  partitions: number,
): CorrectionMessage[] {
  const byPartition = Map.groupBy(changes, ({ trace_id }) => partitionOf(plan.org_id, trace_id, partitions));
  return [...byPartition].flatMap(([partition, own]) =>
    [...pieces(own, changeBytes, MESSAGE_CHANGES)].map((some, index) => ({
      partition,
      corrections: {
        correction_hex: createHash('sha256')
          .update(`${plan.plan_id}\n${partition}\n${index}`)
          .digest('hex')
          .slice(0, 16),
        org_id: plan.org_id,
        changes: some,
      },
    })),
  );
}

const changeBytes = ({ trace_id, agent_id, model, department, realm, cost_usd }: CostChange): number =>
  [trace_id, agent_id, model, department, realm, cost_usd].reduce(
    (sum, text) => sum + Buffer.byteLength(text),
    CHANGE_FRAME_BYTES,
  );

export class CorrectionLog {
  readonly #log: Log;
  readonly #partitions: number;

  constructor(log: Log, partitions: number) {
    this.#log = log;
    this.#partitions = partitions;
  }

  /** Resolves when everything that the log contains now has landed. */
  async untilLanded(signal: AbortSignal): Promise<void> {
    const mixed = await this.#lastOf(MIXED_SUBJECT);
    const through = new Map<number, number>();
    for (let partition = 0; partition < this.#partitions; partition += 1)
      through.set(partition, Math.max(mixed, await this.#lastOf(ingestSubject(partition))));
    await this.#landedThrough(through, signal);
  }

  /**
   * Publishes the changes of a plan. Resolves when they have landed and would survive power loss.
   */
  async send(
    plan: { plan_id: string; org_id: string },
    changes: readonly CostChange[],
    signal: AbortSignal,
  ): Promise<void> {
    const through = new Map<number, number>();
    for (const { partition, corrections } of correctionMessages(plan, changes, this.#partitions)) {
      signal.throwIfAborted();
      const head = headers();
      head.set(FINGERPRINT_HEADER, costCorrectionsCodec.fingerprint);
      const { seq } = await this.#log.js.publish(ingestSubject(partition), costCorrectionsCodec.encode(corrections), {
        msgID: `cost-${corrections.correction_hex}`,
        headers: head,
        timeout: PUBLISH_MS_MAX,
      });
      through.set(partition, Math.max(seq, through.get(partition) ?? 0));
    }
    await this.#landedThrough(through, signal);
  }

  /** Returns the sequence of the newest message of a subject; 0 if the log contains none. */
  async #lastOf(subject: string): Promise<number> {
    const message = await this.#log.jsm.streams.getMessage(INGEST_STREAM, { last_by_subj: subject });
    return message?.seq ?? 0;
  }

  async #landedThrough(through: ReadonlyMap<number, number>, signal: AbortSignal): Promise<void> {
    for (const [partition, seq] of through) {
      for (;;) {
        if (seq === 0) break;
        const record = await readRecord(this.#log, 'partitions', partitionKey(partition));
        if (record !== null && record.checkpoint >= seq) break;
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        signal.throwIfAborted();
      }
    }
  }
}
