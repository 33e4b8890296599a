// Folds the events of Langfuse's older protocol, and runs of LangSmith whose end comes in a later
// request, into spans and publishes them to the ingest log. It reads the stream LANGFUSE on one worker, the leader, and holds the events of each trace until all
// of its observations have ended and SETTLE_MS passed without another event, until `openMs`
// passed, or until an erasure asks for the events of its organization. Guarantees: events leave the stream only after their spans are in the log. A fold is
// planned in KV before it is published, so a worker that takes over folds the same events into the
// same spans, which the log recognizes; of two workers that both believe to lead, one wins. Bounds:
// HELD_BYTES_MAX of events are held, and beyond that the traces that have waited longest are folded
// early; the stream has its own bound.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer, JsMsg } from '@nats-io/jetstream';
import type { KV } from '@nats-io/kv';
import { isLostWrite } from '../../ops/platform/nats/conflict.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import {
  foldKey,
  type LangfuseFold,
  langfuseFold,
  type LangfuseMessage,
  langfuseMessage,
  KNOWN_MAX,
} from '../../schemas/records/langfuse.ts';
import { FOLD_SUBJECT } from '../../schemas/signals/erasure.ts';
import { LANGFUSE_STREAM } from '../../schemas/streams.ts';
import { foldLegacy, isOpenAfter } from '../domain/langfuse/fold.ts';
import { foldRuns, hasEnded, isRunPart } from '../domain/langsmith/runs.ts';
import type { PartItem } from '../domain/traces/logged_span.ts';
import { publishSpans } from './publish_spans.ts';

/** Time without an event after which a trace whose observations have all ended is folded. */
const SETTLE_MS = 5000;
const FETCH_MS = 1000;
const FETCH_MAX = 500;
/** Pause after an error, and while another worker leads. */
const PAUSE_MS = 1000;
/** Time for which one request of an erasure has effect. */
const HURRY_MS = 5000;
/** Maximum bytes of events in memory. */
const HELD_BYTES_MAX = 64 * 1024 * 1024;
/** Types of events that begin an observation or a run. */
const BEGINS = /-(?:create|post)$/;

export interface FolderOptions {
  log: Log;
  /** Partitions of the ingest log. */
  partitions: number;
  isLeader: () => boolean;
  /** Time without an event after which a trace with open observations is folded, milliseconds. */
  openMs: number;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
}

interface Held {
  seq: number;
  items: readonly PartItem[];
}

interface HeldTrace {
  org_id: string;
  trace_id: string;
  subject: string;
  messages: Held[];
  bytes: number;
  /** Ids of observations that have begun and not ended. */
  open: Set<string>;
  /** When the newest message was stored, milliseconds since the epoch. */
  lastAt: number;
}

export class LangfuseFolder {
  readonly #options: FolderOptions;
  readonly #stopping = new AbortController();
  readonly #traces = new Map<string, HeldTrace>();
  #consumer: Consumer | null = null;
  #bytes = 0;
  /** Organizations whose events an erasure waits for, with the time until which it does. */
  readonly #hurried = new Map<string, number>();
  #working: Promise<void> = Promise.resolve();

  constructor(options: FolderOptions) {
    this.#options = options;
  }

  start(): void {
    const { log, now } = this.#options;
    const hurry = log.nc.subscribe(FOLD_SUBJECT, {
      callback: (error, message) => {
        if (error === null) this.#hurried.set(message.string(), now() + HURRY_MS);
      },
    });
    this.#stopping.signal.addEventListener('abort', () => {
      hurry.unsubscribe();
    });
    this.#working = this.#work();
  }

  /** Resolves when the fold under way has ended. What is held is read again by the next leader. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { isLeader, onProblem } = this.#options;
    while (!this.#isStopping()) {
      try {
        if (isLeader()) {
          await this.#read();
          await this.#foldDue();
          continue;
        }
        this.#forget();
      } catch (error) {
        if (this.#isStopping()) return;
        onProblem('events of Langfuse could not be folded; trying again', error);
        this.#forget();
      }
      await sleep(PAUSE_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  /** A function, as the compiler would take a property for unchanged across an await. */
  #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #forget(): void {
    this.#consumer = null;
    this.#traces.clear();
    this.#bytes = 0;
  }

  /** Takes the messages that have arrived, from the first of the stream on. */
  async #read(): Promise<void> {
    const { log } = this.#options;
    this.#consumer ??= await log.js.consumers.get(LANGFUSE_STREAM);
    const messages = await this.#consumer.fetch({ max_messages: FETCH_MAX, expires: FETCH_MS });
    const stop = () => {
      messages.stop();
    };
    this.#stopping.signal.addEventListener('abort', stop, { once: true });
    for await (const message of messages) {
      this.#take(message);
      if (this.#bytes > HELD_BYTES_MAX) break;
    }
    this.#stopping.signal.removeEventListener('abort', stop);
  }

  #take(message: JsMsg): void {
    let value: LangfuseMessage;
    try {
      value = langfuseMessage.parse(message.json());
    } catch (error) {
      this.#options.onProblem('a message of Langfuse events could not be read', error);
      return;
    }
    const { org_id, trace_id, items } = value;
    const { subject } = message;
    let trace = this.#traces.get(subject);
    if (trace === undefined) {
      trace = { org_id, trace_id, subject, messages: [], bytes: 0, open: new Set(), lastAt: 0 };
      this.#traces.set(subject, trace);
    }
    trace.messages.push({ seq: message.seq, items });
    trace.bytes += message.data.length;
    this.#bytes += message.data.length;
    trace.lastAt = message.time.getTime();
    for (const item of items) {
      const { id } = item.body;
      const key = typeof id === 'string' ? id : item.id;
      const isOpen = isRunPart(item) ? !hasEnded({ ...item.body }) : isOpenAfter(item);
      if (!isOpen) trace.open.delete(key);
      else if (BEGINS.test(item.type)) trace.open.add(key);
    }
  }

  async #foldDue(): Promise<void> {
    const { now, openMs } = this.#options;
    for (const [org_id, until] of this.#hurried) if (until < now()) this.#hurried.delete(org_id);
    const byAge = [...this.#traces.values()].sort((a, b) => a.lastAt - b.lastAt);
    for (const trace of byAge) {
      if (this.#isStopping()) return;
      const idle = now() - trace.lastAt;
      const isDue = (trace.open.size === 0 && idle >= SETTLE_MS) || idle >= openMs;
      if (isDue || this.#hurried.has(trace.org_id) || this.#bytes > HELD_BYTES_MAX) await this.#fold(trace);
    }
  }

  /** Folds the messages of a trace that are held, or those of a fold that was interrupted. */
  async #fold(trace: HeldTrace): Promise<void> {
    const { log } = this.#options;
    const kv = await log.bucket('langfuse_folds');
    const key = foldKey(trace.org_id, trace.trace_id);
    const entry = await kv.get(key);
    const isThere = entry?.operation === 'PUT';
    const state: LangfuseFold = isThere
      ? langfuseFold.parse(entry.json())
      : { org_id: trace.org_id, done: 0, plan: 0, known: [] };
    const waiting = trace.messages.filter(({ seq }) => seq > state.done);
    const last = waiting.at(-1)?.seq ?? 0;
    const plan = state.plan > state.done ? state.plan : last;
    const folded = waiting.filter(({ seq }) => seq <= plan);
    if (folded.length > 0) {
      const planned = await this.#write(kv, key, { ...state, plan }, entry?.revision ?? 0);
      if (planned === null) return;
      const items = folded.flatMap((message) => message.items);
      const before = new Set(state.known);
      const runs = items.filter(isRunPart);
      const others = items.filter((item) => !isRunPart(item));
      const spans = [...foldLegacy(trace.trace_id, others, before), ...foldRuns(runs, before)];
      const scope = runs.length > 0 ? 'langsmith' : 'langfuse';
      await publishSpans(this.#options, { org_id: trace.org_id, scope, spans });
      const known = [...new Set([...state.known, ...spans.map(({ id }) => id)])].slice(-KNOWN_MAX);
      await this.#write(kv, key, { ...state, done: plan, plan, known }, planned);
    }
    await log.jsm.streams.purge(LANGFUSE_STREAM, { filter: trace.subject, seq: Math.max(plan, state.done) + 1 });
    this.#drop(trace, Math.max(plan, state.done));
  }

  /** Removes the messages that have become spans. */
  #drop(trace: HeldTrace, through: number): void {
    trace.messages = trace.messages.filter(({ seq }) => seq > through);
    if (trace.messages.length > 0) return;
    this.#bytes -= trace.bytes;
    this.#traces.delete(trace.subject);
  }

  /** Resolves with the new revision; with null when another worker wrote first. */
  async #write(kv: KV, key: string, state: LangfuseFold, revision: number): Promise<number | null> {
    try {
      return await kv.put(key, JSON.stringify(state), { previousSeq: revision });
    } catch (error) {
      if (isLostWrite(error)) return null;
      throw error;
    }
  }
}
