// Fills the store with spans of 90 days without the service: texts are made and counted in threads,
// everything else inside ClickHouse. The rows are those that the pipeline would have landed and
// moved: every posting and every count that search ranks by is exact.
import { Worker } from 'node:worker_threads';
import {
  activitySql,
  BENCH_TEXTS_DDL,
  BLOCK_SPANS,
  DAYS,
  largeSql,
  largeTexts,
  largeTracesSql,
  largeUsageSql,
  postingsSql,
  SEGMENT_TEXTS,
  spansSql,
  textsSql,
  tracesSql,
  usageSql,
  type FilledRange,
  type FilledSegment,
  type FillPlan,
} from './fill_sql.ts';
import type { TextRange } from './fill_texts.ts';
import { thousands } from './report.ts';
import { calm, merged, sqlRunner, type RunSql } from './store.ts';

/**
 * Maximum distinct texts; each span has one of them. Enough that word frequencies equal those of
 * texts of their own.
 */
const TEXTS_MAX = 8 * SEGMENT_TEXTS;
const THREADS = 2;
export const LARGE_TRACES = 20;
/**
 * Up to here every span has its texts. Spans beyond have them in the newest days only, as a
 * retention of texts leaves them: otherwise texts alone would need 80 GB at 50 million spans.
 */
const ALL_TEXTS_SPANS_MAX = 10_080_000;
const TEXT_DAYS_BEYOND = 30;
const DAY_MS = 86_400_000;
const SETTLE_MS_MAX = 300_000;
const CALM_MS_MAX = 60_000;
const MERGE_TRIES_MAX = 5;

/** Blocks of texts are sorted in memory: this size keeps the engine within its bound. */
const TEXT_SETTINGS = {
  max_insert_threads: '2',
  max_threads: '2',
  min_insert_block_size_rows: '32768',
  min_insert_block_size_bytes: '100000000',
  max_block_size: '16384',
  // Moves write the times of their parts too; reads leave out parts by them.
  materialize_statistics_on_insert: '1',
};
/**
 * Postings of a segment become one block. Texts are split few at a time: their words take some 30
 * times as many bytes as memory.
 */
const POSTING_SETTINGS = {
  max_insert_threads: '1',
  max_threads: '2',
  max_block_size: '2048',
  min_insert_block_size_rows: '10000000',
  min_insert_block_size_bytes: '536870912',
  materialize_statistics_on_insert: '1',
};
/**
 * Spans of one statement; a multiple of a block of traces. The engine has about 1 GB for
 * everything.
 */
const SPANS_AT_ONCE = 126_000;
const SPAN_SETTINGS = { max_insert_threads: '1', max_threads: '1', min_insert_block_size_rows: '65536' };

export interface Filled {
  /** Spans in the store, large traces included. */
  spans: number;
  /** Duration of this filling alone, without the merges after it. */
  seconds: number;
  settle_s: number;
  /** Active parts by table. */
  parts: Record<string, number>;
  /** Bytes on disk of all tables of the service. */
  bytes: number;
}

function makeTexts(clickhouseUrl: string, count: number): Promise<unknown> {
  const share = Math.ceil(count / THREADS);
  const threads = Array.from({ length: THREADS }, (_, index) => {
    const range: TextRange = {
      clickhouseUrl,
      from: index * share,
      to: Math.min(count, (index + 1) * share),
      seed: 100 + index,
    };
    const worker = new Worker(new URL('fill_texts.ts', import.meta.url), { workerData: range });
    return new Promise<void>((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', (code) => {
        if (code === 0) resolve();
        else reject(new Error(`making texts ended with code ${code}`));
      });
    });
  });
  return Promise.all(threads);
}

/**
 * Writes the texts of a segment, then their postings: the service removes places that no document
 * has. Beside many merges, the engine's memory would not do.
 */
async function fillSegment(runSql: RunSql, plan: FillPlan, filled: FilledSegment): Promise<void> {
  await calm(runSql, CALM_MS_MAX);
  await runSql(textsSql(plan, filled), TEXT_SETTINGS);
  await runSql(postingsSql(plan, filled), POSTING_SETTINGS);
}

/** Writes spans, their traces and their use, a part of a chunk at a time, and also not beside many merges. */
async function fillSpans(runSql: RunSql, plan: FillPlan, { from, count, texts }: FilledRange): Promise<void> {
  for (let first = from; first < from + count; first += SPANS_AT_ONCE) {
    const rows = Math.min(SPANS_AT_ONCE, from + count - first);
    await calm(runSql, CALM_MS_MAX);
    await runSql(spansSql(plan, { from: first, count: rows, texts }), SPAN_SETTINGS);
    await runSql(tracesSql(first, rows), SPAN_SETTINGS);
    await runSql(usageSql(first, rows), SPAN_SETTINGS);
    await runSql(activitySql(first, rows), SPAN_SETTINGS);
  }
}

const PARTS_SQL =
  "SELECT table, count() FROM system.parts WHERE active AND database = currentDatabase() AND table IN ('spans', 'span_texts', 'span_words', 'traces', 'trace_lookup', 'usage_events') GROUP BY table FORMAT TSV";
/** Returns the bytes on disk of all tables of the service. */
export const BYTES_SQL =
  "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase() AND table != 'bench_texts'";

const WEEKS_SQL = `SELECT table, partition_id FROM system.parts WHERE active AND database = currentDatabase() AND table IN ('span_texts', 'span_words')
  GROUP BY table, partition_id HAVING count() > 1 AND partition_id < (SELECT max(partition_id) FROM system.parts WHERE active AND database = currentDatabase() AND table = 'span_texts')
  ORDER BY table, partition_id FORMAT TSV`;

/**
 * Merges each week of texts but the newest into one part, as the engine does an hour after its last
 * text. The engine may give such a merge up beside others (236 ABORTED); the week is then taken again after
 * the others.
 */
async function mergeWeeks(runSql: RunSql): Promise<void> {
  for (let tries = 0; tries < MERGE_TRIES_MAX; tries += 1) {
    const weeks = (await runSql(WEEKS_SQL)).split('\n').filter((text) => text !== '');
    for (const line of weeks) {
      const [table = '', week = ''] = line.split('\t');
      await calm(runSql, CALM_MS_MAX);
      await runSql(`OPTIMIZE TABLE ${table} PARTITION ID '${week}' FINAL`).catch((error: unknown) => {
        if (!String(error).includes('Code: 236')) throw error;
      });
    }
    if (weeks.length === 0) return;
  }
}

/** A store that is filled from size to size: what a larger size adds lies over the same 90 days. */
export class GrowingStore {
  readonly #runSql: RunSql;
  readonly #org: string;
  readonly #chunk: number;
  readonly #startMs = Date.now() - DAYS * DAY_MS - 3_600_000;
  readonly #progress: (line: string) => void;
  /** Spans without the large traces. */
  #spans = 0;
  /**
   * Number of the newest segment. The segments of the text mover begin at 2^20, those of its first
   * epoch.
   */
  #segment = 0;

  /** Makes the texts. @param spansMax the largest size that will be filled */
  static async open(
    clickhouseUrl: string,
    org: string,
    spansMax: number,
    progress: (line: string) => void,
  ): Promise<GrowingStore> {
    const store = new GrowingStore(sqlRunner(clickhouseUrl), org, Math.min(TEXTS_MAX, wholeBlocks(spansMax)), progress);
    const began = performance.now();
    await store.#runSql('DROP TABLE IF EXISTS bench_texts');
    await store.#runSql(BENCH_TEXTS_DDL);
    await makeTexts(clickhouseUrl, Math.max(store.#chunk, LARGE_TRACES * 1000));
    progress(`  ${thousands(store.#chunk)} texts made in ${((performance.now() - began) / 1000).toFixed(0)} s`);
    return store;
  }

  private constructor(runSql: RunSql, org: string, chunk: number, progress: (line: string) => void) {
    this.#runSql = runSql;
    this.#org = org;
    this.#chunk = chunk;
    this.#progress = progress;
  }

  /**
   * Fills up to about `wanted` spans and 20 traces of 1,000 spans in the organization, and waits
   * for the merges.
   */
  async grow(wanted: number): Promise<Filled> {
    const [from, to, runSql] = [this.#spans, wholeBlocks(wanted), this.#runSql];
    const plan: FillPlan = { org: this.#org, startMs: this.#startMs, spanMs: DAYS * DAY_MS, from, spans: to - from };
    const began = performance.now();
    const seconds = (): number => (performance.now() - began) / 1000;
    for (let first = from; first < to; first += this.#chunk) {
      const count = Math.min(this.#chunk, to - first);
      const texts = hasTexts(plan, first);
      if (texts) await this.#fillTexts(plan, first, count);
      await fillSpans(runSql, plan, { from: first, count, texts });
      this.#progress(`  ${thousands(first + count)} of ${thousands(to)} spans after ${seconds().toFixed(0)} s`);
    }
    if (from === 0) {
      await runSql(largeSql(plan, LARGE_TRACES), SPAN_SETTINGS);
      await fillSegment(runSql, plan, largeTexts((this.#segment += 1), LARGE_TRACES));
      await runSql(largeTracesSql(LARGE_TRACES), SPAN_SETTINGS);
      await runSql(largeUsageSql(LARGE_TRACES), SPAN_SETTINGS);
    }
    this.#spans = to;
    const filledS = seconds();
    await mergeWeeks(runSql);
    await merged(runSql, SETTLE_MS_MAX);
    const parts = (await runSql(PARTS_SQL)).split('\n').map((line) => line.split('\t'));
    return {
      spans: to + LARGE_TRACES * 1000,
      seconds: filledS,
      settle_s: seconds() - filledS,
      parts: Object.fromEntries(parts.map(([table = '', count]) => [table, Number(count)])),
      bytes: Number(await runSql(BYTES_SQL)),
    };
  }

  /** Writes the texts of a chunk, a segment at a time. */
  async #fillTexts(plan: FillPlan, from: number, count: number): Promise<void> {
    for (let done = 0; done < count; done += SEGMENT_TEXTS)
      await fillSegment(this.#runSql, plan, {
        segment: (this.#segment += 1),
        from: from + done,
        count: Math.min(SEGMENT_TEXTS, count - done),
        firstText: done,
      });
  }

  /** Drops the texts; the store cannot be filled further. */
  async close(): Promise<void> {
    await this.#runSql('DROP TABLE IF EXISTS bench_texts');
  }
}

/** Time runs with the number of the span, so a whole chunk has texts or none. */
const hasTexts = ({ from, spans }: FillPlan, first: number): boolean =>
  first < ALL_TEXTS_SPANS_MAX || (first - from) / spans >= 1 - TEXT_DAYS_BEYOND / DAYS;

const wholeBlocks = (spans: number): number => Math.ceil(spans / BLOCK_SPANS) * BLOCK_SPANS;

/** Fills the store with about this many spans and 20 traces of 1,000 spans in the organization. */
export async function fillStore(
  clickhouseUrl: string,
  org: string,
  wanted: number,
  progress: (line: string) => void,
): Promise<Filled> {
  const store = await GrowingStore.open(clickhouseUrl, org, wanted, progress);
  const filled = await store.grow(wanted);
  await store.close();
  return filled;
}
