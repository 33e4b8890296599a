// The streams of the ingest log in NATS: creates them, follows the record that says which they are,
// and changes their number. Takes the record from the bucket `service`; gives the process its
// LogLayout, which is replaced when the record changes.
//
// A change has steps that any process can repeat (ops/adr/0056-several-log-streams.md). Guarantees: no message enters a
// stream whose end is in the record, and positions of a later generation are above all before.
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { JetStreamApiError, type JetStreamClient, type JetStreamManager } from '@nats-io/jetstream';
import type { KV } from '@nats-io/kv';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { FINGERPRINT_HEADER, ingestBatchCodec } from '../../../schemas/codec.ts';
import { firstLayout, LogLayout, type LogStream, nextGeneration } from '../../../schemas/log_layout.ts';
import { partitionOf } from '../../../schemas/partition_of.ts';
import { LOG_LAYOUT_KEY, type LogLayoutRecord, logLayoutRecord } from '../../../schemas/records/log_layout.ts';
import { ingestConfig, ingestSubject, type StreamLimits, type StreamSpec } from '../../../schemas/streams.ts';
import { isLostWrite, waitAfterLostWrite } from './conflict.ts';
import { followKey } from './follow_key.ts';

const STREAM_NOT_FOUND = 10059;
const SUBJECTS_OVERLAP = 10065;
const PUBLISH_MS_MAX = 3000;
/**
 * Time between the creation of new streams and the end of the old ones. A message that a publisher
 * had sent when its stream lost its subjects is stored within this time.
 */
const END_WAIT_MS = 1000;
/** Maximum tries of a step against other processes that do the same one. */
const TRIES_MAX = 20;

export interface LogStreamsDeps {
  nc: NatsConnection;
  js: JetStreamClient;
  jsm: JetStreamManager;
  /** The bucket `service`. */
  kv: KV;
  limits: StreamLimits;
  /** Creates a stream, or updates it where its configuration differs. */
  makeStream: (config: StreamSpec) => Promise<void>;
}

interface Revised {
  layout: LogLayout;
  revision: number;
  /** When this process read the record first, on the monotonic clock in milliseconds. */
  since: number;
}

/** Returns the state of a stream; null if it does not exist. */
export async function streamState(jsm: JetStreamManager, name: string) {
  try {
    return (await jsm.streams.info(name)).state;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return null;
    throw error;
  }
}

export class LogStreams {
  readonly #deps: LogStreamsDeps;
  readonly #listeners = new Set<(layout: LogLayout) => void>();
  #known: Revised;

  private constructor(deps: LogStreamsDeps, known: Revised) {
    this.#deps = deps;
    this.#known = known;
  }

  /**
   * Opens the streams of a log whose record exists: completes a change that has begun, and creates
   * what is missing.
   */
  static async open(deps: LogStreamsDeps): Promise<LogStreams> {
    const streams = await LogStreams.attach(deps);
    await streams.complete();
    followKey(deps, LOG_LAYOUT_KEY, async () => {
      await streams.#reread();
    });
    return streams;
  }

  /** Returns the streams as they are now, without creating, changing or following any. */
  static async attach(deps: LogStreamsDeps): Promise<LogStreams> {
    return new LogStreams(deps, await read(deps.kv));
  }

  get layout(): LogLayout {
    return this.#known.layout;
  }

  /**
   * Calls back with the layout whenever it changes.
   * @returns a function that stops it
   */
  onChange(listener: (layout: LogLayout) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Begins to change the number of streams, unless a change is under way, and completes it as far
   * as possible without waiting for the pipeline.
   * @param partitions number of partitions of the log
   * @returns false if another change must end first
   */
  async change(count: number, partitions: number): Promise<boolean> {
    const { layout, revision } = await this.#reread();
    if (layout.isChanging) return false;
    if (layout.open.length === count) return true;
    if (count > partitions) throw new TooManyStreams(count, partitions);
    if (!(await this.#write({ ...layout.record, next: count }, revision))) return false;
    await this.complete();
    // A little more, because a timer may fire early.
    await sleep(END_WAIT_MS + 10);
    await this.end();
    return true;
  }

  /** Begins the generation that a change has asked for, if any, and creates the streams that are missing. */
  async complete(): Promise<void> {
    for (let tries = 1; ; tries++) {
      const { layout, revision } = await this.#reread();
      try {
        if (await this.#completed(layout, revision)) return;
      } catch (error) {
        // A process that knew the former generation has just given a stream its subjects back.
        const overlaps = error instanceof JetStreamApiError && error.code === SUBJECTS_OVERLAP;
        if (!overlaps || tries >= TRIES_MAX) throw error;
      }
      await waitAfterLostWrite(tries);
    }
  }

  /** @returns false if the record has changed meanwhile, so that the step must be repeated */
  async #completed(layout: LogLayout, revision: number): Promise<boolean> {
    const { jsm, makeStream, limits } = this.#deps;
    const closed = layout.record.next === null ? layout.streams.filter(({ isOpen }) => !isOpen) : layout.streams;
    for (const stream of closed) await this.#withdraw(stream);
    if (layout.record.next !== null) {
      const lastSeqs = await Promise.all(
        layout.open.map(async ({ name }) => (await jsm.streams.info(name)).state.last_seq),
      );
      const { partitions } = await readPartitions(this.#deps.kv);
      await this.#write(nextGeneration(layout, lastSeqs, partitions), revision);
      return false;
    }
    for (const stream of layout.open) await makeStream(ingestConfig(stream, limits));
    return (await this.#reread()).revision === revision;
  }

  /** Takes its subjects from a stream, so that no message enters it. */
  async #withdraw(stream: LogStream): Promise<void> {
    const { jsm, makeStream, limits } = this.#deps;
    const subjects = [stream.endSubject];
    try {
      const { config } = await jsm.streams.info(stream.name);
      if (!isDeepStrictEqual(config.subjects, subjects)) await jsm.streams.update(stream.name, { subjects });
    } catch (error) {
      if (!(error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND)) throw error;
      // A stream with an end that does not exist was deleted. Another one was never created.
      if (stream.end === null) await makeStream(ingestConfig({ ...specOf(stream), subjects }, limits));
    }
  }

  /**
   * Stores the last message of each stream of the former generation, once its messages on their way
   * have arrived, and puts their sequences into the record.
   */
  async end(): Promise<void> {
    const { layout, revision, since } = this.#known;
    const ending = layout.streams.filter(({ isOpen, end }) => !isOpen && end === null);
    if (ending.length === 0 || performance.now() - since < END_WAIT_MS) return;
    const ends = await Promise.all(ending.map(({ endSubject }) => this.#publishEnd(endSubject)));
    const generations = layout.record.generations.map((generation, index) =>
      index === 0 ? { ...generation, ends } : generation,
    );
    await this.#write({ ...layout.record, generations }, revision);
  }

  /** @returns the sequence of the message */
  async #publishEnd(subject: string): Promise<number> {
    const head = headers();
    head.set(FINGERPRINT_HEADER, ingestBatchCodec.fingerprint);
    const ack = await this.#deps.js.publish(subject, ingestBatchCodec.encode({ events: [] }), {
      headers: head,
      timeout: PUBLISH_MS_MAX,
    });
    return ack.seq;
  }

  /**
   * Deletes the streams of the former generation once all of it has landed.
   * @param checkpoints position up to which everything has landed, by partition
   * @returns whether streams were deleted
   */
  async retire(checkpoints: readonly number[]): Promise<boolean> {
    const { layout, revision } = this.#known;
    const former = layout.streams.filter(({ isOpen }) => !isOpen);
    const landed = checkpoints.every((checkpoint, partition) =>
      former.every((one) => !one.has(partition) || (one.end !== null && one.seqThrough(checkpoint) >= one.end)),
    );
    if (former.length === 0 || !landed) return false;
    for (const stream of former) {
      const state = await streamState(this.#deps.jsm, stream.name);
      if (state === null) continue;
      await this.#sendOn(stream, state.last_seq);
      await this.#deps.jsm.streams.delete(stream.name);
    }
    return this.#write({ ...layout.record, generations: layout.record.generations.slice(-1) }, revision);
  }

  /**
   * Publishes what a stream holds after its end to the streams that are open. No message enters a
   * stream that late unless its server stood still for longer than END_WAIT_MS. An event that is
   * published twice is recognized by its id.
   */
  async #sendOn({ name, end, mixed, endSubject }: LogStream, lastSeq: number): Promise<void> {
    const { js, jsm, kv } = this.#deps;
    const { partitions } = await readPartitions(kv);
    for (let seq = (end ?? lastSeq) + 1; seq <= lastSeq; seq += 1) {
      const message = await jsm.streams.getMessage(name, { seq });
      const fingerprint = message?.header.get(FINGERPRINT_HEADER);
      if (message === null || fingerprint === undefined) continue;
      const head = headers();
      head.set(FINGERPRINT_HEADER, fingerprint);
      const options = { headers: head, timeout: PUBLISH_MS_MAX };
      if (message.subject === mixed)
        for (const event of ingestBatchCodec.decode(message.data, fingerprint).events) {
          const subject = ingestSubject(partitionOf(event.org_id, event.trace_id, partitions));
          await js.publish(subject, ingestBatchCodec.encode({ events: [event] }), { ...options });
        }
      else if (message.subject !== endSubject) await js.publish(message.subject, message.data, options);
    }
  }

  /** @returns false if another process has written the record meanwhile */
  async #write(record: LogLayoutRecord, revision: number): Promise<boolean> {
    try {
      await this.#deps.kv.update(LOG_LAYOUT_KEY, JSON.stringify(record), revision);
    } catch (error) {
      if (!isLostWrite(error)) throw error;
      return false;
    }
    await this.#reread();
    return true;
  }

  async #reread(): Promise<Revised> {
    const now = await read(this.#deps.kv);
    this.#take(now);
    return now;
  }

  #take(now: Revised): void {
    if (now.revision <= this.#known.revision) return;
    this.#known = now;
    for (const listener of this.#listeners) listener(now.layout);
  }
}

/** The ingest log has fewer partitions than streams were asked for. */
export class TooManyStreams extends Error {
  constructor(count: number, partitions: number) {
    super(`SERVICE_LOG_STREAMS is ${count}; the ingest log has ${partitions} partitions, so it must be at most that`);
  }
}

const specOf = ({ name, subjects, siblings }: LogStream) => ({ name, subjects, siblings });

async function read(kv: KV): Promise<Revised> {
  const entry = await kv.get(LOG_LAYOUT_KEY);
  // An older version of the service has one stream and writes no record.
  if (entry?.operation !== 'PUT')
    return { layout: new LogLayout(firstLayout(1, 1)), revision: 0, since: performance.now() };
  const layout = new LogLayout(logLayoutRecord.parse(entry.json()));
  return { layout, revision: entry.revision, since: performance.now() };
}

async function readPartitions(kv: KV): Promise<{ partitions: number }> {
  const entry = await kv.get('config');
  return entry?.operation === 'PUT' ? entry.json<{ partitions: number }>() : { partitions: 1 };
}
