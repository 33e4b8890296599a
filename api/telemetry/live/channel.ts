// What the listeners of one organization share: the changes that are not sent yet, and one read of
// the store a second for all of them. Changes of one thing are joined, so a listener gets its newest
// state; what does not fit is counted, never queued without bound.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { TraceItem } from '../../http/trace_items.ts';
import type { Listener } from './listener.ts';
import type { LiveEvents, Topic } from './schema.ts';

/** Minimum time between two batches, and so between two reads, of one organization. */
const BATCH_MS = 1000;
/** Maximum traces of one message. */
export const TRACES_MAX = 200;
/** Maximum traces of one read; changes of further ones are counted as dropped. */
export const READ_MAX = 1000;
/** Maximum changed traces that wait for a read. */
const CHANGED_MAX = 10_000;
/** Maximum messages about other things that wait, and characters of all of them. */
const MESSAGES_MAX = 1000;
const MESSAGE_CHARS_MAX = 1024 * 1024;

/** A message about anything but traces. Of two with one topic and id, the newer one is sent. */
export type LiveMessage = {
  [Name in 'incident' | 'budget' | 'eval' | 'job']: { topic: Topic; event: Name; id: string; data: LiveEvents[Name] };
}['incident' | 'budget' | 'eval' | 'job'];

interface WaitingMessage extends Pick<LiveMessage, 'topic' | 'event'> {
  json: string;
}

export interface ChangedTrace {
  item: TraceItem;
  /** True at the place of each filter that the trace matches. */
  matched: readonly boolean[];
}

export interface ChannelDeps<Filter> {
  /** Reads the traces of the organization that exist, newest first. */
  readTraces: (
    trace_ids: readonly string[],
    filters: readonly Filter[],
    signal: AbortSignal,
  ) => Promise<readonly ChangedTrace[]>;
  onProblem: ReportProblem;
}

export class Channel<Filter> {
  readonly listeners = new Set<Listener<Filter>>();
  readonly #deps: ChannelDeps<Filter>;
  /** Changed traces, the newest last; true for those that became complete. */
  #changed = new Map<string, boolean>();
  /** Changes beyond CHANGED_MAX. */
  #beyond = 0;
  #messages = new Map<string, WaitingMessage>();
  #messageChars = 0;
  #resync: LiveEvents['resync']['reason'] | null = null;
  /** True if something landed since the last read. */
  #landed = false;
  #timer: NodeJS.Timeout | null = null;
  #flushing = false;
  #flushedAt = -Infinity;
  #failing = false;
  readonly #closed = new AbortController();

  constructor(deps: ChannelDeps<Filter>) {
    this.#deps = deps;
  }

  /** Takes note that a trace started or became complete. */
  traceChanged(trace_id: string, complete: boolean): void {
    if (!this.#isFollowed(trace_id)) return;
    const before = this.#changed.get(trace_id);
    if (before === undefined && this.#changed.size >= CHANGED_MAX) this.#beyond += 1;
    else {
      // Written again, so that the newest changes are last.
      this.#changed.delete(trace_id);
      this.#changed.set(trace_id, complete || before === true);
    }
    this.#schedule();
  }

  /** Takes note that rows landed, which may belong to a trace that is followed. */
  landed(): void {
    if (this.#watched().size === 0) return;
    this.#landed = true;
    this.#schedule();
  }

  tell(message: LiveMessage): void {
    if (![...this.listeners].some(({ spec }) => spec.topics.has(message.topic))) return;
    const { topic, event, id, data } = message;
    const key = `${topic} ${id}`;
    const json = JSON.stringify(data);
    const chars = this.#messageChars - (this.#messages.get(key)?.json.length ?? 0) + json.length;
    if (chars > MESSAGE_CHARS_MAX || (this.#messages.size >= MESSAGES_MAX && !this.#messages.has(key)))
      this.#resync = 'overflow';
    else {
      this.#messages.set(key, { topic, event, json });
      this.#messageChars = chars;
    }
    this.#schedule();
  }

  /** Takes note that changes were missed. */
  lost(): void {
    this.#resync = 'lost';
    this.#schedule();
  }

  close(): void {
    this.#closed.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #isFollowed(trace_id: string): boolean {
    for (const { spec } of this.listeners) if (spec.topics.has('traces') || spec.trace_ids.has(trace_id)) return true;
    return false;
  }

  #watched(): Set<string> {
    return new Set([...this.listeners].flatMap(({ spec }) => [...spec.trace_ids]));
  }

  #schedule(): void {
    if (this.#timer !== null || this.#flushing || this.#closed.signal.aborted) return;
    const wait = Math.max(0, this.#flushedAt + BATCH_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#flush();
    }, wait);
    this.#timer.unref();
  }

  async #flush(): Promise<void> {
    this.#flushing = true;
    this.#flushedAt = performance.now();
    if (this.#resync !== null) for (const listener of this.listeners) listener.send('resync', { reason: this.#resync });
    this.#resync = null;
    const messages = this.#messages;
    this.#messages = new Map();
    this.#messageChars = 0;
    for (const listener of this.listeners)
      listener.sendAll(messages.values().filter(({ topic }) => listener.spec.topics.has(topic)));
    await this.#sendTraces();
    this.#flushing = false;
    if (this.#isWaiting()) this.#schedule();
  }

  #isWaiting(): boolean {
    return this.#changed.size > 0 || this.#messages.size > 0 || this.#landed || this.#resync !== null;
  }

  async #sendTraces(): Promise<void> {
    const watched = this.#landed ? this.#watched() : new Set<string>();
    if (this.#changed.size === 0 && watched.size === 0) return;
    const changed = this.#changed;
    const beyond = this.#beyond;
    this.#changed = new Map();
    this.#beyond = 0;
    this.#landed = false;
    const newest = [...changed.keys()].slice(-READ_MAX);
    const filters = [...new Set([...this.listeners].flatMap(({ spec }) => spec.filter ?? []))];
    try {
      const ids = [...new Set([...newest, ...watched])];
      const read = await this.#deps.readTraces(ids, filters, this.#closed.signal);
      const unread = beyond + changed.size - newest.length;
      for (const listener of this.listeners) sendTo(listener, { read, filters, changed, unread });
      this.#failing = false;
    } catch (cause) {
      if (this.#closed.signal.aborted) return;
      // The changes are read again with the next batch.
      for (const [trace_id, complete] of changed) {
        if (this.#changed.size >= CHANGED_MAX) this.#beyond += 1;
        else this.#changed.set(trace_id, complete || this.#changed.get(trace_id) === true);
      }
      this.#beyond += beyond;
      this.#landed = watched.size > 0;
      if (!this.#failing) this.#deps.onProblem('changed traces could not be read for live listeners', cause);
      this.#failing = true;
    }
  }
}

interface Batch<Filter> {
  read: readonly ChangedTrace[];
  filters: readonly Filter[];
  changed: ReadonlyMap<string, boolean>;
  /** Number of changes that were not read. */
  unread: number;
}

function sendTo<Filter>(listener: Listener<Filter>, { read, filters, changed, unread }: Batch<Filter>): void {
  const { topics, trace_ids, filter } = listener.spec;
  const shown = ({ item }: ChangedTrace) => ({ ...item, complete: changed.get(item.trace_id) === true });
  for (const one of read) if (trace_ids.has(one.item.trace_id)) listener.sendTrace(shown(one));
  if (!topics.has('traces')) return;
  const place = filter === null ? -1 : filters.indexOf(filter);
  // A listener that came while the store was read, with a filter of its own, begins with the next batch.
  if (filter !== null && place === -1) return;
  const own = read.filter(
    ({ item, matched }) => changed.has(item.trace_id) && (filter === null || matched[place] === true),
  );
  const dropped = Math.max(0, own.length - TRACES_MAX) + unread;
  if (own.length > 0 || dropped > 0) listener.send('traces', { traces: own.slice(0, TRACES_MAX).map(shown), dropped });
}
