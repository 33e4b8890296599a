// Reads of one trace: outlines of 1,000 and 10,000 spans, one span, its conversation, and words in
// its texts. The trace of 10,000 spans is copied from ten of the large traces.
import { largeTraceIdSql } from './fill_sql.ts';
import type { RunSql } from './store.ts';
import type { Measured } from './timed_reads.ts';
import { wordOf, type Random } from './vocabulary.ts';

const RUNS = 40;
const BIG_TRACE = 'trc_bench_10000';
const BIG_PARTS = 10;

/** Times a path that is made anew for each run. */
export type TimeRead = (what: string, runs: number, path: () => string, bars?: Measured['bars']) => Promise<Measured>;

/**
 * Returns the statement that copies spans of ten large traces into one trace. Its spans start one
 * after the other, and the roots of all but the first become children of the first.
 */
const bigTraceSql = `INSERT INTO spans SELECT * REPLACE (
    '${BIG_TRACE}' AS trace_id,
    concat(toString(part), '_', span_id) AS span_id,
    multiIf(parent_span_id != '', concat(toString(part), '_', parent_span_id), part = 1, '', first_root) AS parent_span_id,
    fromUnixTimestamp64Milli(from_ms + toInt64(place) * 10, 'UTC') AS started_at,
    fromUnixTimestamp64Milli(from_ms + toInt64(place) * 10 + 800, 'UTC') AS ended_at) EXCEPT (part, first_root, from_ms, place)
  FROM (
    SELECT *, dense_rank() OVER (ORDER BY trace_id) AS part, row_number() OVER (ORDER BY trace_id, parent_span_id, started_at) AS place,
      min(toUnixTimestamp64Milli(started_at)) OVER () AS from_ms,
      concat('1_', first_value(span_id) OVER (ORDER BY trace_id, parent_span_id, started_at)) AS first_root
    FROM spans WHERE trace_id IN (SELECT * FROM (${largeTraceIdSql(BIG_PARTS).replace(' FORMAT TSV', '')}))
  )`;

const pickOne = (random: Random, list: readonly string[]): string => list[random() % list.length] ?? '';

/** @param large ids of traces of 1,000 spans */
export async function traceReads(
  read: TimeRead,
  runSql: RunSql | null,
  random: Random,
  large: readonly string[],
): Promise<Measured[]> {
  if (runSql === null || large.length === 0) return [];
  if ((await runSql(`SELECT count() FROM spans WHERE trace_id = '${BIG_TRACE}'`)).trim() === '0')
    await runSql(bigTraceSql);
  const [first = ''] = large;
  const spans = (await runSql(`SELECT span_id FROM spans WHERE trace_id = '${first}' LIMIT 200 FORMAT TSV`)).split(
    '\n',
  );
  const any = (): string => pickOne(random, large);
  return [
    await read('outline of 1,000 spans', RUNS, () => `/v1/traces/${any()}/outline`, { p50: 25 }),
    await read('outline of 10,000 spans', RUNS, () => `/v1/traces/${BIG_TRACE}/outline`, { p50: 80 }),
    await read('one span of 1,000', RUNS, () => `/v1/traces/${first}/spans/${pickOne(random, spans)}`),
    await read('conversation, first page, of 1,000 spans', RUNS, () => `/v1/traces/${any()}/conversation`),
    await read(
      'words in the texts of 1,000 spans',
      RUNS,
      () => `/v1/traces/${any()}/matches?q=${wordOf(1000 + (random() % 4000))}`,
    ),
    await read(
      'BM25 search with snippets, two medium words',
      RUNS,
      () => `/v1/spans/search?snippets=true&q=${wordOf(1000 + (random() % 4000))}+${wordOf(1000 + (random() % 4000))}`,
    ),
  ];
}
