// The buffer of tail sampling for one partition: traces that would be summarised so far, with their events, oldest first.
// A data structure without time and I/O: who decides is traces/tail_sampling.ts. Nothing in it is the only copy: the checkpoint
// stays below the oldest event held, so all of it is read again from the log.
import type { LoggedEvent, MeteredEvent } from '../stage.ts';

/** An event on its way to its rows, and what it was in the log. */
export interface LandingEvent {
  event: MeteredEvent;
  /** null where it is not known any more. */
  source: LoggedEvent | null;
  /** It was held before: its trace has no row yet. */
  wasBuffered?: boolean;
}

export interface BufferedTrace {
  readonly key: string;
  readonly partition: number;
  /** Place of its oldest event in the log. */
  readonly log_seq: number;
  /** When its oldest event was received, milliseconds. */
  readonly since: number;
  /** How much the worker had read when it was first held. */
  readonly read: LogRead;
  /** Of its spans so far, milliseconds since the epoch. */
  started_at: number;
  ended_at: number;
  readonly events: LandingEvent[];
  /** Estimate of what it takes in memory. */
  bytes: number;
}

/** How much of the log a worker has read since it began. */
export interface LogRead {
  events: number;
  bytes: number;
}

/** What an event takes in memory beside its texts, and each span of it: objects, their maps, and their place here (measured). */
const EVENT_BYTES = 1200;
const SPAN_BYTES = 800;

/**
 * What an event takes in memory while it is held: its body as it was sent, and its spans, which hold most of the body once more. Text
 * beyond ASCII counts two bytes a character, as it may take. Measured, it is 1 to 1.3 times what an event takes.
 */
export function bufferedBytes({ event, source }: LandingEvent): number {
  const texts = event.spans.reduce((sum, { prompt, response }) => sum + prompt.length + response.length, 0);
  const body = source?.body ?? '';
  const width = Buffer.byteLength(body) === body.length ? 1 : 2;
  return EVENT_BYTES + event.spans.length * SPAN_BYTES + width * (body.length + Math.max(body.length, texts));
}

export class TailBuffer {
  /** By key, in the order in which they were first held, which is that of the log. */
  readonly #traces = new Map<string, BufferedTrace>();
  #bytes = 0;

  /** Traces held. */
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

  /** Whether an event that is held has this id and another place in the log. */
  hasOther(
    key: string,
    { event_hex, log_seq, log_index }: { event_hex: string; log_seq: number; log_index: number },
  ): boolean {
    const events = this.#traces.get(key)?.events ?? [];
    return events.some(
      ({ event }) => event.event_hex === event_hex && (event.log_seq !== log_seq || event.log_index !== log_index),
    );
  }

  /** @returns the trace with the event in it */
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

  /** Drops every trace of an organization. */
  forgetOrg(org_id: string): void {
    // A key begins with the org and a space; see traceKey.
    for (const key of [...this.#traces.keys()]) if (key.startsWith(`${org_id} `)) this.release(key);
  }

  /** Takes a trace out. */
  release(key: string): BufferedTrace | undefined {
    const trace = this.#traces.get(key);
    if (trace === undefined) return undefined;
    this.#traces.delete(key);
    this.#bytes -= trace.bytes;
    return trace;
  }
}

/** From when to when the spans of an event, and of the trace that holds it, last. */
export function bounds(event: MeteredEvent, held?: BufferedTrace): { started_at: number; ended_at: number } {
  let { started_at, ended_at } = held ?? { started_at: Infinity, ended_at: -Infinity };
  for (const span of event.spans) {
    started_at = Math.min(started_at, span.started_at);
    ended_at = Math.max(ended_at, span.ended_at);
  }
  return { started_at, ended_at };
}
