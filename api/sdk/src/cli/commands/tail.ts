// Follows traces as they become complete. The service ends streams after some minutes and may
// restart; the command connects again, and prints what became complete in between.
import { setTimeout as pause } from 'node:timers/promises';
import type { MillraceClient, Query } from '../../client.ts';
import { MillraceError } from '../../errors.ts';
import { type Call, type Command, EXIT, Unreachable } from '../command.ts';
import { count, localTime, milliseconds, toneOfOutcome, usd } from '../output.ts';
import { plain } from '../table.ts';
import { filterOptions, filtersOf, type Trace } from './traces.ts';

type LiveTrace = Trace & { complete: boolean };

/** Ids of printed traces that are remembered, so that none is printed twice. */
const PRINTED_MAX = 10_000;
/** Traces that are read after a connection was lost. */
const MISSED_MAX = 200;
/** A trace may become complete this long after it began, and be found after a lost connection. */
const LOOK_BACK_MS = 120_000;
const AGAIN_MS = 1000;
/** Connections in a row that fail before the command gives up. */
const FAILURES_MAX = 30;

export const tracesTail: Command = {
  name: 'traces tail',
  usage: '',
  about: 'Prints traces as they become complete, until it is interrupted',
  args: [0, 0],
  options: {
    ...filterOptions,
    limit: { type: 'string', short: 'n', value: 'N', about: 'Ends after this many traces' },
  },
  run: async ({ client, given, out, signal }) => {
    const limit = given.whole('limit', { min: 1, max: 1_000_000_000, fallback: Infinity });
    const tail = new Tail(client, filtersOf(given), signal);
    let printed = 0;
    for await (const trace of tail.traces((text) => {
      out.note(text);
    })) {
      await (out.isTable ? out.line(lineOf(trace, out)) : out.json(trace));
      printed += 1;
      if (printed >= limit) break;
    }
    return EXIT.ok;
  },
};

function lineOf(trace: Trace, out: Call['out']): string {
  const { started_at, outcome, duration_ms, cost_usd, root_span_name, agent_id, trace_id } = trace;
  const tokens = `${count(trace.input_tokens + trace.output_tokens)} tokens`;
  const name = [root_span_name, agent_id].filter((one) => one !== null).join(' · ');
  return [
    localTime(started_at).slice(-8),
    out.toned(outcome.padEnd(7), toneOfOutcome(outcome)),
    milliseconds(duration_ms).padStart(9),
    tokens.padStart(14),
    usd(cost_usd).padStart(10),
    plain(trace_id),
    plain(name),
  ].join('  ');
}

class Tail {
  readonly #client: MillraceClient;
  readonly #filters: Query;
  readonly #signal: AbortSignal;
  readonly #printed = new Set<string>();
  #lostAt: number | null = null;

  constructor(client: MillraceClient, filters: Query, signal: AbortSignal) {
    [this.#client, this.#filters, this.#signal] = [client, filters, signal];
  }

  /** Yields traces as they become complete, until the signal aborts. @throws MillraceError, Unreachable */
  async *traces(note: Call['out']['note']): AsyncGenerator<Trace> {
    const isStopped = (): boolean => this.#signal.aborted;
    for (let failures = 0; !isStopped();) {
      try {
        for await (const { event, data } of this.#events()) {
          failures = 0;
          if (event === 'resync') this.#lostAt ??= Date.now();
          if (event === 'ready' || event === 'resync') yield* this.#missed();
          if (event === 'traces') yield* this.#complete(data, note);
        }
      } catch (error) {
        if (isStopped()) return;
        if (error instanceof MillraceError && error.status !== null && error.status < 500) throw error;
        failures += 1;
        if (failures === 1) note('The connection was lost. Connecting again…');
        if (failures > FAILURES_MAX) throw new Unreachable(`the service at ${this.#client.url} does not answer`);
      }
      this.#lostAt ??= Date.now();
      await pause(AGAIN_MS, undefined, { signal: this.#signal }).catch(() => undefined);
    }
  }

  async *#events(): AsyncGenerator<{ event: string; data: unknown }> {
    const answer = await this.#client.ask('GET', '/v1/live', {
      query: { ...this.#filters, topics: 'traces' },
      headers: { accept: 'text/event-stream' },
      signal: this.#signal,
      timeoutMs: 0,
    });
    if (answer.body === null) return;
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of answer.body) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const lines = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        const field = (name: string): string =>
          lines
            .filter((line) => line.startsWith(`${name}:`))
            .map((line) => line.slice(name.length + 1).trimStart())
            .join('\n');
        const [event, data] = [field('event'), field('data')];
        if (event !== '' && data !== '') yield { event, data: JSON.parse(data) as unknown };
      }
    }
  }

  *#complete(data: unknown, note: Call['out']['note']): Generator<Trace> {
    const { traces, dropped } = data as { traces: LiveTrace[]; dropped: number };
    for (const trace of traces.toReversed()) if (trace.complete && this.#isNew(trace)) yield trace;
    if (dropped > 0) note(`${count(dropped)} further traces changed. \`millrace traces list\` shows them.`);
  }

  /** Yields the traces that became complete while there was no connection. */
  async *#missed(): AsyncGenerator<Trace> {
    if (this.#lostAt === null) return;
    const since = new Date(this.#lostAt - LOOK_BACK_MS).toISOString();
    this.#lostAt = null;
    const { data } = await this.#client.get<{ data: Trace[] }>('/v1/traces', {
      ...this.#filters,
      since,
      limit: MISSED_MAX,
    });
    for (const { trace_id } of data.toReversed()) {
      if (this.#printed.has(trace_id)) continue;
      const { data: trace } = await this.#client.get<{ data: LiveTrace }>(`/v1/traces/${encodeURIComponent(trace_id)}`);
      if (trace.complete && this.#isNew(trace)) yield trace;
    }
  }

  #isNew({ trace_id }: Trace): boolean {
    if (this.#printed.has(trace_id)) return false;
    this.#printed.add(trace_id);
    const [oldest] = this.#printed;
    if (this.#printed.size > PRINTED_MAX && oldest !== undefined) this.#printed.delete(oldest);
    return true;
  }
}
