// The live streams of one API process: who listens to which organization, and what is followed for
// them. A source is followed while somebody listens to a topic that needs it, so without listeners
// nothing is done. Streams end when the process drains, when they are old, and when the caller loses
// a permission.
import type { ServerResponse } from 'node:http';
import { liveStreams } from '../../../ops/platform/metrics.ts';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { ApiError } from '../../http/errors.ts';
import { Channel, type ChangedTrace, type LiveMessage } from './channel.ts';
import { Listener, type ListenerSpec } from './listener.ts';
import type { Topic } from './schema.ts';

/** Maximum listeners of one organization in a process. */
export const LISTENERS_ORG_MAX = 50;
/** Maximum different filters of one organization's listeners: the store evaluates each of them. */
export const FILTERS_ORG_MAX = 10;
const BEAT_MS = 15_000;
/** Maximum age of a stream. The client connects again, and is authenticated again. */
const AGE_MS_MAX = 600_000;

/** A change that a source reports. */
export type LiveSignal =
  | { kind: 'trace'; org_id: string; trace_id: string; complete: boolean }
  | { kind: 'landed' }
  | { kind: 'lost' }
  | ({ kind: 'message'; org_id: string } & LiveMessage);
/** Begins to follow something; the returned function stops it. */
export type LiveSource = (take: (signal: LiveSignal) => void) => () => void;

type SourceName = 'events' | 'landings' | 'reconnects' | 'incidents' | 'evals' | 'jobs';
const SOURCES_OF: Readonly<Record<Topic | 'trace', readonly SourceName[]>> = {
  traces: ['events', 'reconnects'],
  trace: ['events', 'landings', 'reconnects'],
  budgets: ['events', 'reconnects'],
  incidents: ['incidents', 'reconnects'],
  evals: ['evals', 'reconnects'],
  jobs: ['jobs', 'reconnects'],
};

export interface HubDeps<Filter> {
  sources: Readonly<Record<SourceName, LiveSource>>;
  readTraces: (
    org_id: string,
    trace_ids: readonly string[],
    filters: readonly Filter[],
    signal: AbortSignal,
  ) => Promise<readonly ChangedTrace[]>;
  /** Resolves once what the sources have begun to follow is followed, or cannot be for now. */
  settled: () => Promise<void>;
  /** Called when a stream is cut off because its client reads too slowly. */
  onSlow: () => void;
  onProblem: ReportProblem;
}

export class LiveHub<Filter> {
  readonly #deps: HubDeps<Filter>;
  readonly #channels = new Map<string, Channel<Filter>>();
  /** Filters by organization and text, so that equal ones are one. */
  readonly #filters = new Map<string, Map<string, Filter>>();
  readonly #following = new Map<SourceName, { stop: () => void; listeners: number }>();
  #beat: NodeJS.Timeout | null = null;
  #draining = false;

  constructor(deps: HubDeps<Filter>) {
    this.#deps = deps;
  }

  /** Number of listeners, and of sources that are followed for them. */
  get size(): { listeners: number; sources: number } {
    const listeners = [...this.#channels.values()].reduce((sum, { listeners: own }) => sum + own.size, 0);
    return { listeners, sources: this.#following.size };
  }

  /**
   * Begins a stream on the response, which ends with the connection. Resolves once its topics are
   * followed.
   * @throws ApiError rate_limited when the organization has the maximum of listeners or filters
   */
  async listen(res: ServerResponse, spec: ListenerSpec<Filter>): Promise<void> {
    const channel = this.#channels.get(spec.org_id) ?? this.#newChannel(spec.org_id);
    if (channel.listeners.size >= LISTENERS_ORG_MAX)
      throw full(`This organization has ${LISTENERS_ORG_MAX} live streams, the most that it can have.`);
    const filter = spec.filter === null ? null : this.#sharedFilter(spec.org_id, channel, spec.filter);
    const sources = new Set([
      ...[...spec.topics].flatMap((topic) => SOURCES_OF[topic]),
      ...(spec.trace_ids.size > 0 ? SOURCES_OF.trace : []),
    ]);
    const listener = new Listener(res, { ...spec, filter }, this.#deps.onSlow);
    if (this.#draining) {
      listener.end('drain');
      return;
    }
    this.#channels.set(spec.org_id, channel);
    channel.listeners.add(listener);
    liveStreams.inc();
    for (const source of sources) this.#follow(source);
    this.#beat ??= setInterval(() => {
      this.#beatAll();
    }, BEAT_MS).unref();
    res.once('close', () => {
      channel.listeners.delete(listener);
      liveStreams.dec();
      if (channel.listeners.size === 0 && this.#channels.get(spec.org_id) === channel) {
        channel.close();
        this.#channels.delete(spec.org_id);
        this.#filters.delete(spec.org_id);
      }
      for (const source of sources) this.#unfollow(source);
      if (this.#channels.size > 0 || this.#beat === null) return;
      clearInterval(this.#beat);
      this.#beat = null;
    });
    await this.#deps.settled();
    listener.ready();
  }

  /** Ends every stream, and those that begin from now on. */
  drain(): void {
    this.#draining = true;
    for (const listener of this.#all()) listener.end('drain');
  }

  #newChannel(org_id: string): Channel<Filter> {
    const { readTraces, onProblem } = this.#deps;
    return new Channel<Filter>({ readTraces: readTraces.bind(null, org_id), onProblem });
  }

  /** Returns the filter of the organization that equals this one, so that the store evaluates it once. */
  #sharedFilter(org_id: string, channel: Channel<Filter>, filter: Filter): Filter {
    const used = new Set([...channel.listeners].map(({ spec }) => spec.filter));
    const known = new Map([...(this.#filters.get(org_id) ?? [])].filter(([, one]) => used.has(one)));
    const text = JSON.stringify(filter);
    const shared = known.get(text) ?? filter;
    if (!known.has(text) && known.size >= FILTERS_ORG_MAX)
      throw full(`The live streams of this organization have ${FILTERS_ORG_MAX} different filters, the most possible.`);
    this.#filters.set(org_id, known.set(text, shared));
    return shared;
  }

  #follow(name: SourceName): void {
    const following = this.#following.get(name);
    if (following === undefined) {
      const stop = this.#deps.sources[name]((signal) => {
        this.#take(signal);
      });
      this.#following.set(name, { stop, listeners: 1 });
    } else following.listeners += 1;
  }

  #unfollow(name: SourceName): void {
    const following = this.#following.get(name);
    if (following === undefined) return;
    following.listeners -= 1;
    if (following.listeners > 0) return;
    following.stop();
    this.#following.delete(name);
  }

  #take(signal: LiveSignal): void {
    if (signal.kind === 'trace') this.#channels.get(signal.org_id)?.traceChanged(signal.trace_id, signal.complete);
    else if (signal.kind === 'message') this.#channels.get(signal.org_id)?.tell(signal);
    else if (signal.kind === 'landed') for (const channel of this.#channels.values()) channel.landed();
    else for (const channel of this.#channels.values()) channel.lost();
  }

  #beatAll(): void {
    for (const listener of this.#all()) {
      if (!listener.spec.isAllowed()) listener.end('revoked');
      else if (performance.now() - listener.begun > AGE_MS_MAX) listener.end('renew');
      else listener.beat();
    }
  }

  #all(): Listener<Filter>[] {
    return [...this.#channels.values()].flatMap(({ listeners }) => [...listeners]);
  }
}

const full = (detail: string) =>
  new ApiError('rate_limited', `${detail} Close one, or list instead.`, { headers: { 'Retry-After': '15' } });
