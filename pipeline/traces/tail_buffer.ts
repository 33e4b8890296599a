// The tail buffer of one partition: traces that sampling would summarize so far, with their events,
// oldest first.
//
// It is a data structure without time and I/O; traces/tail_sampling.ts decides. It is never the
// only copy: the checkpoint stays below the oldest buffered event, so that a new owner reads all of
// it again from the log.
import type { LoggedEvent, MeteredEvent } from '../stage.ts';

/** An event on its way to its rows, with the event as it was logged. */
export interface LandingEvent {
  event: MeteredEvent;
  /** null if the event as logged is no longer known. */
  source: LoggedEvent | null;
  /** True if the event was buffered, so its trace has no row yet. */
  wasBuffered?: boolean;
}

export interface BufferedTrace {
  readonly key: string;
  readonly partition: number;
  /** log_seq of its oldest event. */
  readonly log_seq: number;
  /** received_at of its oldest event, in milliseconds. */
  readonly since: number;
  /** How much the worker had read when the trace was first buffered. */
  readonly read: LogRead;
  /** Start and end of its spans so far, in milliseconds since the epoch. */
  started_at: number;
  ended_at: number;
  readonly events: LandingEvent[];
  /** Estimated memory, in bytes. */
  bytes: number;
}

/** How much of the log a worker has read since it started. */
export interface LogRead {
  events: number;
  bytes: number;
}

/**
 * Estimated bytes of an event, and of each of its spans, beside their texts: objects, maps and the
 * place in the buffer (measured).
 */
const EVENT_BYTES = 1200;
const SPAN_BYTES = 800;

/**
 * Returns the estimated memory of a buffered event, in bytes: its body as sent, and its spans,
 * which repeat most of the body. A text with characters beyond ASCII may take two bytes a character
 * and counts so. Measured, the estimate is 1 to 1.3 times what an event takes.
 */
export function bufferedBytes({ event, source }: LandingEvent): number {
  const texts = event.spans.reduce((sum, { prompt, response }) => sum + prompt.length + response.length, 0);
  const body = source?.body ?? '';
  const width = Buffer.byteLength(body) === body.length ? 1 : 2;
  return EVENT_BYTES + event.spans.length * SPAN_BYTES + width * (body.length + Math.max(body.length, texts));
}

export class TailBuffer {
  /**
   * Traces by key, in the order in which they were first buffered, which is the order of the log.
   */
  readonly #traces = new Map<string, BufferedTrace>();
  #bytes = 0;

  /** Number of buffered traces. */
  get size(): number {
    return this.#traces.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get oldest(): BufferedTrace | undefined {
    const first = this.#traces.values().next();
    return first.done === true ? undefined : first.value;
  }

  find(key: string): BufferedTrace | undefined {
    return this.#traces.get(key);
  }

  /** Returns whether a buffered event has this id at another log position. */
  hasOther(
    key: string,
    { event_hex, log_seq, log_index }: { event_hex: string; log_seq: number; log_index: number },
  ): boolean {
    const events = this.#traces.get(key)?.events ?? [];
    return events.some(
      ({ event }) => event.event_hex === event_hex && (event.log_seq !== log_seq || event.log_index !== log_index),
    );
  }

  /**
   * Adds an event to its trace.
   *
   * @returns the trace, including the event
   */
  add(key: string, one: LandingEvent, read: LogRead): BufferedTrace {
    const { event } = one;
    const { started_at, ended_at } = bounds(event);
    const bytes = bufferedBytes(one);
    let trace = this.#traces.get(key);
    if (trace === undefined) {
      const { partition, log_seq, received_at: since } = event;
      trace = { key, partition, log_seq, since, read: { ...read }, started_at, ended_at, events: [], bytes: 0 };
      this.#traces.set(key, trace);
    }
    trace.started_at = Math.min(trace.started_at, started_at);
    trace.ended_at = Math.max(trace.ended_at, ended_at);
    trace.events.push(one);
    trace.bytes += bytes;
    this.#bytes += bytes;
    return trace;
  }

  forgetOrg(org_id: string): void {
    // A key begins with the organization and a space; see traceKey.
    for (const key of [...this.#traces.keys()]) if (key.startsWith(`${org_id} `)) this.release(key);
  }

  /** Removes a trace, and returns it. */
  release(key: string): BufferedTrace | undefined {
    const trace = this.#traces.get(key);
    if (trace === undefined) return undefined;
    this.#traces.delete(key);
    this.#bytes -= trace.bytes;
    return trace;
  }
}

/** Returns the start and the end of an event's spans, and of the buffered trace if there is one. */
export function bounds(event: MeteredEvent, held?: BufferedTrace): { started_at: number; ended_at: number } {
  let { started_at, ended_at } = held ?? { started_at: Infinity, ended_at: -Infinity };
  for (const span of event.spans) {
    started_at = Math.min(started_at, span.started_at);
    ended_at = Math.max(ended_at, span.ended_at);
  }
  return { started_at, ended_at };
}
