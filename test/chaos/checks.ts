// What must be true of the store and the streams when the load is over, whatever was killed
// meanwhile. In: what was acknowledged. Out: a line for each check; `breach` where it fails.
import { DeliverPolicy } from '@nats-io/jetstream';
import { picoToDecimal } from '../../pipeline/domain/pricing/money.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { DEAD_LETTERS_STREAM, EVENTS_STREAM } from '../../schemas/streams.ts';
import { FINGERPRINT_HEADER, serviceEventsCodec, type ServiceEvent } from '../../schemas/codec.ts';
import type { RunSql } from '../bench/store.ts';
import { searchChecks } from './search_checks.ts';
import type { Expected } from './sender.ts';

export interface Check {
  what: string;
  expected: string;
  found: string;
  /** True when something is lost, doubled or wrong. */
  breach: boolean;
  /**
   * True when it became true later than it should: not a breach, as other work on the machine
   * causes that too.
   */
  slow?: boolean;
  /** The rows concerned, a line each. */
  rows?: readonly string[];
}

/** The organization that Expected describes. test/chaos/side_checks.ts checks the others. */
const MAIN = "org_id = 'org_chaos'";

const POSITION = 'partition, log_seq, log_index, log_sub';
const TEXTS = `(SELECT ${POSITION}, event_key, span_id FROM span_texts WHERE ${MAIN} UNION ALL SELECT ${POSITION}, event_key, span_id FROM span_texts_recent WHERE ${MAIN})`;

export const equal = (what: string, expected: number | bigint | string, found: number | bigint | string): Check => ({
  what,
  expected: String(expected),
  found: String(found),
  breach: String(expected) !== String(found),
});
export const none = (what: string, found: number | string, rows: readonly string[] = []): Check => ({
  ...equal(what, 0, found),
  rows,
});

/** Returns a decimal text without zeros at its end. */
const plain = (decimal: string): string => decimal.replace(/\.?0+$/, '');

/**
 * Checks that every acknowledged event is stored with as many rows as it has spans, and nothing
 * else is.
 */
async function spanChecks(runSql: RunSql, { spans }: Expected): Promise<Check[]> {
  const rows = (
    await runSql(
      `SELECT lower(hex(event_key)), count(), uniqExact(span_id) FROM spans WHERE ${MAIN} GROUP BY event_key FORMAT TSV`,
    )
  )
    .split('\n')
    .filter((line) => line !== '');
  let [doubled, foreign, partial] = [0, 0, 0];
  const seen = new Set<string>();
  for (const row of rows) {
    const [key = '', count = '0', distinct = '0'] = row.split('\t');
    const hex = key.padStart(16, '0');
    seen.add(hex);
    const wanted = spans.get(hex);
    if (wanted === undefined) foreign += 1;
    else if (Number(distinct) < wanted) partial += 1;
    if (Number(count) > Number(distinct) || Number(count) > (wanted ?? Infinity)) doubled += 1;
  }
  const lost = [...spans.keys()].filter((hex) => !seen.has(hex));
  return [
    none('acknowledged events lost', lost.length, lost),
    none('events doubled', doubled),
    none('events with a part of their spans', partial),
    none('rows of no acknowledged event', foreign),
    equal(
      'rows in spans',
      [...spans.values()].reduce((sum, count) => sum + count, 0),
      await runSql(`SELECT count() FROM spans WHERE ${MAIN}`),
    ),
  ];
}

async function textChecks(runSql: RunSql, { texts }: Expected): Promise<Check[]> {
  const [distinct = '', doubled = ''] = (
    await runSql(`SELECT uniqExact(${POSITION}), count() - uniqExact(${POSITION}) FROM ${TEXTS} FORMAT TSV`)
  ).split('\t');
  const orphans = await runSql(
    `SELECT count() FROM ${TEXTS} WHERE (${POSITION}) NOT IN (SELECT ${POSITION} FROM spans)`,
  );
  return [
    equal('texts', texts, distinct),
    none('texts doubled', doubled),
    none('texts of no span', orphans),
    none('texts not searchable', await runSql('SELECT count() FROM span_texts_recent')),
  ];
}

async function traceChecks(runSql: RunSql, { traces }: Expected): Promise<Check[]> {
  const live = await runSql(
    `SELECT countIf(${MAIN}), countIf(rows != 1) FROM (SELECT org_id, trace_id, sum(sign) AS rows FROM traces GROUP BY org_id, trace_id) FORMAT TSV`,
  );
  const [count = '', notOne = ''] = live.split('\t');
  const fields = 'input_tokens, output_tokens, cost_usd';
  const differing = await runSql(`SELECT count() FROM
    (SELECT trace_id, sum(sign * toInt64(spans)) AS n, sum(sign * toInt64(input_tokens)) AS i, sum(sign * toInt64(output_tokens)) AS o, sum(sign * cost_usd) AS c, sumIf(sign, outcome = 'error') AS bad FROM traces GROUP BY trace_id) AS t
    FULL OUTER JOIN (SELECT trace_id, count() AS n, sum(input_tokens) AS i, sum(output_tokens) AS o, sum(cost_usd) AS c, max(outcome = 'error') AS bad FROM (SELECT trace_id, outcome, ${fields} FROM spans) GROUP BY trace_id) AS s USING (trace_id)
    WHERE t.n != s.n OR t.i != s.i OR t.o != s.o OR t.c != s.c OR t.bad != s.bad`);
  return [
    equal('traces', traces.size, count),
    none('traces without exactly one live row', notOne),
    none('traces that are not the sum of their spans', differing),
  ];
}

async function sumChecks(runSql: RunSql, expected: Expected): Promise<Check[]> {
  const wanted = [
    expected.spans.size,
    expected.input_tokens,
    expected.output_tokens,
    expected.storage_bytes,
    plain(picoToDecimal(expected.cost_pico_usd)),
  ];
  const tables = {
    spans: `SELECT uniqExact(event_key), sum(input_tokens), sum(output_tokens), sum(storage_bytes), sum(cost_usd) FROM spans WHERE ${MAIN} FORMAT TSV`,
    usage_events: `SELECT sum(events), sum(input_tokens), sum(output_tokens), sum(storage_bytes), sum(cost_usd) FROM usage_events WHERE ${MAIN} FORMAT TSV`,
  };
  const checks: Check[] = [];
  for (const [table, sql] of Object.entries(tables)) {
    const [events = '', input = '', output = '', storage = '', cost = ''] = (await runSql(sql)).split('\t');
    checks.push(
      equal(
        `${table}: events, tokens in and out, bytes, cost`,
        wanted.join(' '),
        [events, input, output, storage, plain(cost)].join(' '),
      ),
    );
  }
  return checks;
}

/**
 * The platform events of the stream, each read once: a call reads what arrived since the last one.
 */
export class EventsRead {
  readonly #log: Log;
  readonly #events: ServiceEvent[] = [];
  #through = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Returns all events up to now. */
  async all(): Promise<readonly ServiceEvent[]> {
    const { state } = await this.#log.jsm.streams.info(EVENTS_STREAM);
    if (state.last_seq <= this.#through || state.messages === 0) return this.#events;
    const consumer = await this.#log.js.consumers.get(EVENTS_STREAM, {
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: this.#through + 1,
    });
    const messages = await consumer.consume();
    for await (const message of messages) {
      this.#events.push(...serviceEventsCodec.decode(message.data, message.headers?.get(FINGERPRINT_HEADER)).events);
      this.#through = message.seq;
      if (message.seq >= state.last_seq) break;
    }
    messages.stop();
    return this.#events;
  }
}

interface Told {
  started: Map<string, Set<string>>;
  completed: Map<string, Set<string>>;
  repeats: number;
}

async function told(read: EventsRead): Promise<Told> {
  const result: Told = { started: new Map(), completed: new Map(), repeats: 0 };
  for (const { event, event_id, payload } of await read.all()) {
    const by = event === 'trace.started' ? result.started : event === 'trace.completed' ? result.completed : null;
    if (by === null) continue;
    const trace = String((JSON.parse(payload) as { trace_id: unknown }).trace_id);
    const ids = by.get(trace);
    if (ids === undefined) by.set(trace, new Set([event_id]));
    else {
      result.repeats += 1;
      ids.add(event_id);
    }
  }
  return result;
}

/** Returns whether every trace was reported complete. */
export async function allCompleted(read: EventsRead, traces: ReadonlySet<string>): Promise<boolean> {
  const { completed } = await told(read);
  return [...traces].every((trace) => completed.has(trace));
}

async function eventChecks(log: Log, read: EventsRead, traces: ReadonlySet<string>): Promise<Check[]> {
  const { started, completed, repeats } = await told(read);
  const without = (by: Map<string, unknown>): string[] => [...traces].filter((trace) => !by.has(trace));
  const unstable = (by: Map<string, Set<string>>): number => [...by.values()].filter((ids) => ids.size > 1).length;
  const dead = await log.jsm.streams.info(DEAD_LETTERS_STREAM);
  return [
    none('traces without trace.started', without(started).length, without(started)),
    none('traces without trace.completed', without(completed).length, without(completed)),
    none('platform events told again under another id', unstable(started) + unstable(completed)),
    { what: 'platform events told again under the same id', expected: 'any', found: String(repeats), breach: false },
    none('dead letters', dead.state.messages),
  ];
}

/**
 * Returns the positions in the log of doubled rows and when they were received: a line for each
 * partition.
 */
export async function doubledPositions(runSql: RunSql): Promise<string[]> {
  const rows = await runSql(`SELECT partition, count(), min(log_seq), max(log_seq), min(at), max(at) FROM
    (SELECT ${POSITION}, min(received_at) AS at FROM spans GROUP BY ${POSITION} HAVING count() > 1) GROUP BY partition ORDER BY partition FORMAT TSV`);
  return rows
    .split('\n')
    .filter((row) => row !== '')
    .map((row) => row.split('\t'))
    .map(
      ([partition = '', count = '', first = '', last = '', from = '', to = '']) =>
        `partition ${partition}: ${count} rows doubled, log ${first} to ${last}, received ${from} to ${to}`,
    );
}

/** Returns the log messages that have not landed, by the service's own metrics. */
export async function lagMessages(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const samples = text.split('\n').filter((line) => /^millrace_pipeline_lag_messages[{ ]/.test(line));
  if (samples.length === 0) return NaN;
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

export interface CheckSources {
  runSql: RunSql;
  log: Log;
  events: EventsRead;
  /** Address of an API process. */
  url: string;
}

/**
 * Runs every check of the main organization, and of the traces of all organizations. Call when
 * nothing changes any more.
 */
export async function runChecks(
  sources: CheckSources,
  expected: Expected,
  traces: ReadonlySet<string> = expected.traces,
): Promise<Check[]> {
  const { runSql, log, events, url } = sources;
  const groups = [
    await spanChecks(runSql, expected),
    await textChecks(runSql, expected),
    await searchChecks(runSql, MAIN),
    await traceChecks(runSql, expected),
    await sumChecks(runSql, expected),
    await eventChecks(log, events, traces),
    [none('lag of the log, messages', await lagMessages(url))],
  ];
  return groups.flat();
}
