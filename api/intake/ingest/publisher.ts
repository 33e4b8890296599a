// Group commit into the ingest log. Takes the events of one request; returns a promise that
// resolves once JetStream has stored all of them, and rejects within COMMIT_MS_MAX when it has not
// acknowledged them. Requests that arrive while a message is in flight share the next one, so that
// many requests share the cost of a synced write. A partition with much to send has messages of its
// own, one in flight; the other partitions of a stream share its mixed messages.
import { randomUUID } from 'node:crypto';
import type { LogStream } from '../../../schemas/log_layout.ts';
import { ingestSubject } from '../../../schemas/streams.ts';
import { type IngestEvent, ingestBatchCodec } from '../../../schemas/codec.ts';
import { ApiError } from '../../http/errors.ts';
import type { LogPort, PublishFailure, Stored } from './ack_inbox.ts';

/** Milliseconds from the call to its end; the contract promises a 502 within a second. */
export const COMMIT_MS_MAX = 900;
/** A message without an acknowledgement is sent once more, with the same id, after this long. */
export const RESEND_MS = 400;
/** Events share a message up to this many bytes; a larger event has a message of its own. */
export const MESSAGE_BYTES_TARGET = 1024 * 1024;
/** A partition with this many bytes waiting gets a message of its own. */
export const OWN_MESSAGE_BYTES = 128 * 1024;
/** Maximum number of events in one message. */
export const MESSAGE_EVENTS_MAX = 2000;
const TICK_MS = 25;

/** An event about to be published, with its partition. */
export interface OutgoingEvent {
  event: IngestEvent;
  partition: number;
  /** Length of the body, by which messages are bounded. */
  bytes: number;
}

/** A request that waits for its parts. */
interface Commit {
  open: number;
  done: boolean;
  /** Position of the last message with events of the request, by partition. */
  positions: Map<number, number>;
  resolve: (positions: ReadonlyMap<number, number>) => void;
  reject: (error: ApiError) => void;
}

/** Events of one request that share a message, all of one partition. */
interface Part {
  partition: number;
  events: IngestEvent[];
  bytes: number;
  deadline: number;
  commit: Commit;
}

interface Message {
  id: string;
  payload: Uint8Array;
  parts: Part[];
  sent_at: number;
  resent: boolean;
}

interface Lane {
  subject: string;
  queue: Part[];
  /** Bytes in the queue. */
  bytes: number;
  message: Message | null;
}

/** The mixed messages of one stream. Filled from the queues of its partitions just before one is sent. */
interface MixedLane extends Lane {
  members: readonly Lane[];
  /** Number of messages that were filled. */
  turn: number;
}

/** A stream that takes messages, as far as the publisher knows it. */
export type OpenStream = Pick<LogStream, 'mixed' | 'has'>;

export interface PublisherDeps {
  port: LogPort;
  partitions: number;
  /** The streams that take messages; changeStreams replaces them. */
  streams: readonly OpenStream[];
  /** Milliseconds of a monotonic clock. */
  now: () => number;
  /** In place of COMMIT_MS_MAX. */
  commitMsMax?: number | undefined;
  /**
   * Called for every acknowledged message with its events and the seconds from sending to
   * acknowledgement.
   */
  observe: (events: number, seconds: number) => void;
  /** Called with the events of each publish once the log has stored them, and their positions. */
  onStored?: (events: readonly OutgoingEvent[], positions: ReadonlyMap<number, number>) => void;
}

export class Publisher {
  readonly #deps: PublisherDeps;
  readonly #commitMsMax: number;
  /** One lane for each partition. */
  readonly #lanes: Lane[];
  /** One lane for each stream. */
  #mixed: readonly MixedLane[];
  readonly #idPrefix = randomUUID().replaceAll('-', '').slice(0, 16);
  #messages = 0;
  /** Parts that wait or are in flight. */
  #open = 0;
  #pumping = false;
  #ticker: NodeJS.Timeout | undefined;

  constructor(deps: PublisherDeps) {
    this.#deps = deps;
    this.#commitMsMax = deps.commitMsMax ?? COMMIT_MS_MAX;
    this.#lanes = Array.from({ length: deps.partitions }, (_, partition) => ({
      subject: ingestSubject(partition),
      queue: [],
      bytes: 0,
      message: null,
    }));
    this.#mixed = this.#mixedLanes(deps.streams);
  }

  /**
   * Publishes mixed messages to other streams from now on. Events in a mixed message without an
   * acknowledgement are published again: where the log has both, the second is recognized.
   */
  changeStreams(streams: readonly OpenStream[]): void {
    const before = this.#mixed;
    if (streams.length === before.length && streams.every(({ mixed }, at) => mixed === before[at]?.subject)) return;
    this.#mixed = this.#mixedLanes(streams);
    for (const lane of before) {
      const parts = [...(lane.message?.parts ?? []), ...lane.queue];
      if (lane.message !== null) this.#deps.port.forget(lane.message.id);
      lane.message = null;
      for (const part of parts.toReversed()) this.#requeue(part);
    }
    this.#schedule();
  }

  #mixedLanes(streams: readonly OpenStream[]): MixedLane[] {
    return streams.map((stream) => ({
      subject: stream.mixed,
      queue: [],
      bytes: 0,
      message: null,
      members: this.#lanes.filter((_lane, partition) => stream.has(partition)),
      turn: 0,
    }));
  }

  #requeue(part: Part): void {
    if (part.commit.done) {
      this.#settle(part, null);
      return;
    }
    const lane = this.#lane(part.partition);
    lane.queue.unshift(part);
    lane.bytes += part.bytes;
  }

  /**
   * Publishes events. Resolves once all are stored, with the position of each partition's events in
   * the log.
   * @param spentMs how much of COMMIT_MS_MAX the request has used up already
   * @throws ApiError upstream_unavailable at once without a connection, or when an acknowledgement
   * is late; rate_limited when the log is full. Some events may be stored then: sent again, they
   * are recognized.
   */
  publish(events: readonly OutgoingEvent[], spentMs = 0): Promise<ReadonlyMap<number, number>> {
    if (!this.#deps.port.connected) return Promise.reject(unavailable('not connected to the log'));
    const deadline = this.#deps.now() + Math.max(0, this.#commitMsMax - spentMs);
    return new Promise((resolve, reject) => {
      const stored = (positions: ReadonlyMap<number, number>): void => {
        this.#deps.onStored?.(events, positions);
        resolve(positions);
      };
      const commit: Commit = { open: 0, done: false, positions: new Map(), resolve: stored, reject };
      this.#enqueue(events, commit, deadline);
      this.#schedule();
    });
  }

  /** Resolves once no part waits or is in flight. No publish may begin meanwhile. */
  async flush(): Promise<void> {
    while (this.#open > 0) await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }

  #enqueue(events: readonly OutgoingEvent[], commit: Commit, deadline: number): void {
    const filling = new Map<number, Part>();
    for (const { event, partition, bytes } of events) {
      let part = filling.get(partition);
      if (part === undefined || part.bytes + bytes > MESSAGE_BYTES_TARGET) {
        part = { partition, events: [], bytes: 0, deadline, commit };
        filling.set(partition, part);
        this.#lane(partition).queue.push(part);
        commit.open++;
        this.#open++;
      }
      part.events.push(event);
      part.bytes += bytes;
      this.#lane(partition).bytes += bytes;
    }
  }

  #lane(partition: number): Lane {
    const lane = this.#lanes[partition];
    if (lane === undefined) throw new Error(`partition ${partition} of ${this.#lanes.length}`);
    return lane;
  }

  /**
   * Sends at the end of this turn of the event loop, so that all requests read in it share
   * messages.
   */
  #schedule(): void {
    this.#ticker ??= setInterval(() => {
      // After the poll phase, so that acknowledgements that arrived while the loop was blocked are
      // taken before a message is considered late.
      setImmediate(() => {
        this.#tick();
      });
    }, TICK_MS);
    if (this.#pumping) return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      this.#pumpAll();
    });
  }

  #pumpAll(): void {
    for (const lane of this.#lanes) if (lane.bytes >= OWN_MESSAGE_BYTES) this.#pump(lane);
    for (const mixed of this.#mixed) {
      if (mixed.message !== null || !this.#deps.port.connected) continue;
      fillMixed(mixed);
      this.#pump(mixed);
    }
  }

  #pump(lane: Lane): void {
    if (lane.message !== null || lane.queue.length === 0 || !this.#deps.port.connected) return;
    const parts = takeParts(lane.queue);
    lane.bytes -= parts.reduce((sum, part) => sum + part.bytes, 0);
    const events = parts.length === 1 ? (parts[0]?.events ?? []) : parts.flatMap((part) => part.events);
    this.#messages++;
    const message: Message = {
      id: `${this.#idPrefix}${this.#messages.toString(36)}`,
      payload: ingestBatchCodec.encode({ events }),
      parts,
      sent_at: this.#deps.now(),
      resent: false,
    };
    lane.message = message;
    this.#send(lane, message, events.length);
  }

  #send(lane: Lane, message: Message, events: number): void {
    const settle = (outcome: Stored | PublishFailure) => {
      if (outcome.kind === 'stored') {
        this.#deps.observe(events, (this.#deps.now() - message.sent_at) / 1000);
        for (const { partition, commit } of message.parts)
          commit.positions.set(partition, Math.max(outcome.position, commit.positions.get(partition) ?? 0));
      }
      this.#finish(lane, message, outcome.kind === 'stored' ? null : errorOf(outcome));
    };
    try {
      this.#deps.port.publish(message.id, lane.subject, message.payload, settle);
    } catch (cause) {
      this.#finish(lane, message, unavailable('the log cannot be written to', cause));
    }
  }

  #finish(lane: Lane, message: Message, error: ApiError | null): void {
    if (lane.message !== message) return;
    lane.message = null;
    this.#deps.port.forget(message.id);
    for (const part of message.parts) this.#settle(part, error);
    this.#pumpAll();
  }

  #settle(part: Part, error: ApiError | null): void {
    this.#open--;
    const { commit } = part;
    commit.open--;
    if (commit.done) return;
    if (error === null && commit.open > 0) return;
    commit.done = true;
    if (error === null) commit.resolve(commit.positions);
    else commit.reject(error);
  }

  #tick(): void {
    const now = this.#deps.now();
    for (const lane of [...this.#lanes, ...this.#mixed]) {
      this.#watchMessage(lane, now);
      // A part that waits behind a slow message is rejected at its own deadline.
      const late = lane.queue.filter((part) => part.deadline <= now);
      if (late.length > 0) {
        lane.queue = lane.queue.filter((part) => part.deadline > now);
        lane.bytes = lane.queue.reduce((sum, part) => sum + part.bytes, 0);
        for (const part of late) this.#settle(part, unavailable('the log did not confirm in time'));
      }
    }
    this.#pumpAll();
    if (this.#open === 0) {
      clearInterval(this.#ticker);
      this.#ticker = undefined;
    }
  }

  #watchMessage(lane: Lane, now: number): void {
    const { message } = lane;
    if (message === null) return;
    if (now - message.sent_at >= this.#commitMsMax) {
      this.#finish(lane, message, unavailable('the log did not confirm in time'));
      return;
    }
    for (const { commit, deadline } of message.parts) {
      if (deadline > now || commit.done) continue;
      commit.done = true;
      commit.reject(unavailable('the log did not confirm in time'));
    }
    if (!message.resent && now - message.sent_at >= RESEND_MS && this.#deps.port.connected) {
      message.resent = true;
      this.#send(
        lane,
        message,
        message.parts.reduce((sum, part) => sum + part.events.length, 0),
      );
    }
  }
}

/**
 * Moves waiting parts into a mixed lane, up to one message, starting with another partition each
 * time.
 */
function fillMixed(mixed: MixedLane): void {
  let events = 0;
  mixed.turn++;
  for (let i = 0; i < mixed.members.length; i++) {
    const lane = mixed.members[(mixed.turn + i) % mixed.members.length];
    for (let part = lane?.queue[0]; lane !== undefined && part !== undefined; part = lane.queue[0]) {
      const full = mixed.bytes + part.bytes > MESSAGE_BYTES_TARGET || events + part.events.length > MESSAGE_EVENTS_MAX;
      if (full && mixed.queue.length > 0) return;
      lane.queue.shift();
      lane.bytes -= part.bytes;
      mixed.queue.push(part);
      mixed.bytes += part.bytes;
      events += part.events.length;
    }
  }
}

/**
 * Takes the parts that share the next message from the front of a queue: at least one, more up to
 * the bounds.
 */
function takeParts(queue: Part[]): Part[] {
  let count = 0;
  let bytes = 0;
  let events = 0;
  for (const part of queue) {
    if (count > 0 && (bytes + part.bytes > MESSAGE_BYTES_TARGET || events + part.events.length > MESSAGE_EVENTS_MAX))
      break;
    count++;
    bytes += part.bytes;
    events += part.events.length;
  }
  return queue.splice(0, count);
}

function unavailable(why: string, cause?: unknown): ApiError {
  return new ApiError('upstream_unavailable', 'The ingest log did not confirm the events. Send them again.', {
    cause: cause ?? new Error(why),
  });
}

function errorOf(failure: PublishFailure): ApiError {
  if (failure.kind === 'failed') return unavailable(failure.detail);
  return new ApiError('rate_limited', 'The ingest log is full. Retry after the number of seconds in Retry-After.', {
    headers: { 'Retry-After': '5' },
    cause: new Error(failure.detail),
  });
}
