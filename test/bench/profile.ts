// Where the CPU time of an event goes while events arrive: by process and thread, and in ClickHouse
// by statement and by table of a merge, from the engine's own logs.
import { BATCH_EVENTS, batchBody } from './bodies.ts';
import { runLoad } from './ingest.ts';
import { threadsBetween, threadsOf } from './processes.ts';
import { single, thousands, type ReportRow, type Section } from './report.ts';
import { merged, sqlRunner } from './store.ts';
import type { Target } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

/** Settings of the service that this part starts. */
export const PROFILED = { SERVICE_CLICKHOUSE_QUERY_LOG: 'true' };

const BODIES = 128;
const LANES = 8;
const SETTLE_MS_MAX = 120_000;
/** Smaller shares are added up in one row. */
const SHOWN_US_MIN = 0.5;

const CPU = "ProfileEvents['UserTimeMicroseconds'] + ProfileEvents['SystemTimeMicroseconds']";
/** Name, executions and microseconds of CPU: of statements, then of merges and mutations by table. */
const LOGGED_SQL = `SELECT if(log_comment = '', 'other statements', splitByChar(' ', log_comment)[1]) AS name, count(), sum(${CPU})
  FROM system.query_log WHERE type != 'QueryStart' AND event_time_microseconds >= fromUnixTimestamp64Milli({from}) GROUP BY name
UNION ALL
SELECT concat(if(event_type = 'MergeParts', 'merges of ', 'mutations of '), table) AS name, count(), sum(${CPU})
  FROM system.part_log WHERE event_type IN ('MergeParts', 'MutatePart') AND event_time_microseconds >= fromUnixTimestamp64Milli({from}) GROUP BY name
FORMAT TSV`;

interface Share {
  name: string;
  us: number;
  note: string;
}

/** Returns a row for each share, the largest first; several that are too small to matter make one. */
function rowsOf(part: string, shares: readonly Share[]): ReportRow[] {
  const sorted = shares.toSorted((a, b) => b.us - a.us);
  const small = sorted.filter(({ us }) => us < SHOWN_US_MIN);
  const rest = small.length > 1 ? small : [];
  const large = sorted.slice(0, sorted.length - rest.length);
  const row = ({ name, us, note }: Share): ReportRow => ({
    what: `${part}: ${name}`,
    value: `${us.toFixed(1)} µs`,
    note,
    measures: single(us, 'us'),
  });
  const restUs = rest.reduce((sum, { us }) => sum + us, 0);
  return [
    ...large.map(row),
    ...(rest.length === 0 ? [] : [row({ name: `${rest.length} others`, us: restUs, note: '' })]),
  ];
}

export interface ProfileOptions {
  target: Target;
  clickhouseUrl: string;
  vocabulary: Vocabulary;
  seconds: number;
  /** Events a second; Infinity for as many as are acknowledged. */
  rate: number;
  progress: (line: string) => void;
}

/**
 * Sends batches for some seconds and waits for landings, moves and merges.
 * @throws Error when the engine keeps no log of statements
 */
export async function benchProfile(options: ProfileOptions): Promise<Section> {
  const { target, clickhouseUrl, vocabulary, seconds, rate, progress } = options;
  const runSql = sqlRunner(clickhouseUrl);
  // The engine creates its log with the first statement that it writes there.
  await runSql('SYSTEM FLUSH LOGS');
  if ((await runSql("SELECT count() FROM system.tables WHERE database = 'system' AND name = 'query_log'")) === '0')
    throw new Error('the engine keeps no log of statements: start the service with SERVICE_CLICKHOUSE_QUERY_LOG=true');
  const random = seededRandom(13);
  const bodies = Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random));
  progress(`profile: batches of ${BATCH_EVENTS} events, ${seconds} s`);
  const threads = () => (target.pid === null ? [] : threadsOf(target.pid));
  const [before, from] = [threads(), Date.now()];
  const result = await runLoad({
    target,
    runSql,
    format: 'custom',
    bodies,
    bodyEvents: BATCH_EVENTS,
    lanes: LANES,
    rate,
    seconds,
    progress,
  });
  await merged(runSql, SETTLE_MS_MAX);
  const used = threadsBetween(before, threads());
  await runSql('SYSTEM FLUSH LOGS');
  const events = result.acknowledged;
  const logged = (await runSql(LOGGED_SQL.replaceAll('{from}', String(from)))).split('\n').map((line): Share => {
    const [name = '', count, us] = line.split('\t');
    return { name, us: Number(us) / events, note: `${thousands(Number(count))} times` };
  });
  const sum = (shares: readonly Share[]): number => shares.reduce((total, { us }) => total + us, 0);
  const parts = [...Map.groupBy(used, ({ part }) => part)].map(([part, uses]) => ({
    part,
    shares: uses.map(({ thread, cpu_s }): Share => ({ name: thread, us: (cpu_s / events) * 1e6, note: '' })),
  }));
  const engine = sum(parts.find(({ part }) => part === 'clickhouse')?.shares ?? []);
  const generator = (result.generator_cpu_s / events) * 1e6;
  const total = parts.reduce((all, { shares }) => all + sum(shares), generator);
  return {
    title: `Where the CPU time of an event goes (model calls with searchable text, batches of ${BATCH_EVENTS}, merges included)`,
    rows: [
      {
        what: 'CPU time an event',
        value: `${total.toFixed(0)} µs`,
        note: `${thousands(events)} events, ${thousands(result.sent_per_s)}/s sent, ${thousands(result.to_queryable_per_s)}/s landed`,
        measures: single(total, 'us'),
      },
      ...rowsOf('clickhouse', [
        ...logged,
        {
          name: 'threads of no statement',
          us: Math.max(0, engine - sum(logged)),
          note: 'sockets, parsing, schedules, logs',
        },
      ]),
      ...parts.filter(({ part }) => part !== 'clickhouse').flatMap(({ part, shares }) => rowsOf(part, shares)),
      { what: 'load generator', value: `${generator.toFixed(1)} µs`, measures: single(generator, 'us') },
    ],
    data: { events, logged, used },
  };
}
