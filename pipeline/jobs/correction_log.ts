// Ingest log as a repricing uses it: waits until everything accepted has landed, and publishes
// corrections of costs, each to the partition that owns its trace. Takes the changes of a plan in a
// fixed order; resolves when all of them have landed.
import { createHash } from 'node:crypto';
import { headers } from '@nats-io/transport-node';
import { streamState } from '../../ops/platform/nats/log_streams.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { readRecord } from '../../ops/platform/nats/watch.ts';
import { partitionKey } from '../../schemas/records/partition.ts';
import { ingestSubject, MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';
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
    await this.#landedThrough(await this.#ends(), signal);
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
      const ack = await this.#log.js.publish(ingestSubject(partition), costCorrectionsCodec.encode(corrections), {
        msgID: `cost-${corrections.correction_hex}`,
        headers: head,
        timeout: PUBLISH_MS_MAX,
      });
      const position = this.#log.streams.layout.named(ack.stream)?.position(ack.seq);
      // The streams of the log are changing just now; the job repeats the message, which counts once.
      if (position === undefined) throw new Error(`stream ${ack.stream} is not known as one of the ingest log yet`);
      through.set(partition, Math.max(position, through.get(partition) ?? 0));
    }
    await this.#landedThrough(through, signal);
  }

  /**
   * Returns the position of the newest message that may hold events of a partition, by partition. It asks
   * subject by subject, which works however many messages arrive meanwhile.
   */
  async #ends(): Promise<Map<number, number>> {
    const { jsm, streams } = this.#log;
    const ends = new Map<number, number>();
    for (const stream of streams.layout.streams) {
      // A closed stream is deleted once all of it has landed.
      if (!stream.isOpen && (await streamState(jsm, stream.name)) === null) continue;
      const lastOf = async (subject: string): Promise<number> => {
        const message = await jsm.streams.getMessage(stream.name, { last_by_subj: subject });
        return message === null ? 0 : stream.position(message.seq);
      };
      const mixed = await lastOf(stream.mixed);
      for (const partition of stream.partitionsOf(this.#partitions)) {
        const newest = Math.max(mixed, await lastOf(ingestSubject(partition)));
        ends.set(partition, Math.max(newest, ends.get(partition) ?? 0));
      }
    }
    return ends;
  }

  async #landedThrough(through: ReadonlyMap<number, number>, signal: AbortSignal): Promise<void> {
    for (const [partition, position] of through) {
      for (;;) {
        if (position === 0) break;
        const record = await readRecord(this.#log, 'partitions', partitionKey(partition));
        if (record !== null && record.checkpoint >= position) break;
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        signal.throwIfAborted();
      }
    }
  }
}
