// Reads and writes of the scores of evals, for the pipeline and the API. Times are milliseconds
// since the epoch. Every read is by organization, judge and eval, the prefix of the table's key,
// and takes the newest row of a key.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery } from '../client/query.ts';
import { storeTime } from '../client/store_time.ts';

/**
 * Maximum bytes of the ids of one statement: the server accepts parameters of up to 128 KiB,
 * escapes included.
 */
const LOOKUP_BYTES_MAX = 60_000;
const WRITE_TIMEOUT_MS = 15_000;
/** Timeout of a stream of scores, whose reader may be slow. */
const STREAM_TIMEOUT_MS = 600_000;
const COMPARE_TIMEOUT_MS = 30_000;
const SAMPLE_TIMEOUT_MS = 30_000;

/** Int64 and UInt64 arrive as text; these stay below 2^53. */
const whole = z.coerce.number().pipe(z.int());
const verdict = z.enum(['pass', 'warn', 'fail', 'error']);

/** Key of the scores of one eval. */
const ofEval = { org_id: z.string(), judge_id: z.string(), eval_id: z.string() };

/** Score that an eval gave one trace or dataset item. */
export interface ScoreRow {
  org_id: string;
  judge_id: string;
  judge_version: number;
  judge_name: string;
  eval_id: string;
  trace_id: string;
  agent_id: string;
  /** Start of the trace. */
  started_ms: number;
  /** Place in the dataset; 0 for stored traces. */
  item_index: number;
  /** null if the judge failed. */
  score: number | null;
  verdict: z.output<typeof verdict>;
  reason: string;
  scored_ms: number;
}

export const readScoreStats = defineQuery({
  name: 'eval_stats',
  file: 'judge_scores/stats.sql',
  params: z.object(ofEval),
  row: z.object({
    total: whole,
    passed: whole,
    warned: whole,
    failed: whole,
    errors: whole,
    mean_score: z.number().nullable(),
    p50_score: z.number().nullable(),
  }),
});

const scoredQuery = defineQuery({
  name: 'eval_scored',
  file: 'judge_scores/scored.sql',
  params: z.object({ ...ofEval, trace_ids: z.array(z.string()) }),
  row: z.object({ trace_id: z.string() }),
});

/** Scores in the order of traces, or of dataset items with `by_item`. */
export const streamScores = defineQuery({
  name: 'eval_scores',
  file: 'judge_scores/scores.sql',
  params: z.object({ ...ofEval, verdicts: z.array(verdict).optional(), by_item: z.literal(true).optional() }),
  row: z.object({
    trace_id: z.string(),
    judge_version: z.int(),
    item_index: z.int(),
    score: z.number().nullable(),
    verdict,
    reason: z.string(),
    scored_at: z.string(),
  }),
  timeoutMs: STREAM_TIMEOUT_MS,
});

/** Kinds of change of an item between two evals. */
export const COMPARED_CHANGES = ['improved', 'regressed', 'unchanged', 'incomparable'] as const;

/**
 * Two evals of a judge. With `by_trace` they are over stored traces, which ids identify; otherwise
 * over dataset items, which places identify.
 */
const pair = {
  org_id: z.string(),
  judge_id: z.string(),
  baseline: z.string(),
  candidate: z.string(),
  by_trace: z.literal(true).optional(),
  changes: z.array(z.enum(COMPARED_CHANGES)).optional(),
  baseline_verdicts: z.array(verdict).optional(),
  candidate_verdicts: z.array(verdict).optional(),
};

export const readComparison = defineQuery({
  name: 'eval_compare',
  file: 'judge_scores/compare.sql',
  params: z.object({ ...pair, by_delta: z.literal(true).optional(), rows: z.int(), skip: z.int() }),
  row: z.object({
    item_index: z.int(),
    baseline_trace_id: z.string(),
    candidate_trace_id: z.string(),
    baseline_score: z.number().nullable(),
    candidate_score: z.number().nullable(),
    baseline_verdict: verdict.or(z.literal('')),
    candidate_verdict: verdict.or(z.literal('')),
    baseline_reason: z.string(),
    candidate_reason: z.string(),
    delta: z.number().nullable(),
    change: z.enum(COMPARED_CHANGES),
  }),
  timeoutMs: COMPARE_TIMEOUT_MS,
});

export const readComparisonTotals = defineQuery({
  name: 'eval_compare_totals',
  file: 'judge_scores/compare_totals.sql',
  params: z.object(pair),
  row: z.object({
    total: whole,
    improved: whole,
    regressed: whole,
    unchanged: whole,
    incomparable: whole,
    mean_delta: z.number().nullable(),
    deviation: z.number().nullable(),
  }),
  timeoutMs: COMPARE_TIMEOUT_MS,
});

/**
 * Sample of the ids of an organization's traces, spread evenly over them and always the same for
 * the same traces; in the order of their time.
 */
export const sampleTraces = defineQuery({
  name: 'eval_sample',
  file: 'judge_scores/sample.sql',
  params: z.object({ org_id: z.string(), since_ms: z.int().optional(), rows: z.int() }),
  row: z.object({ trace_id: z.string() }),
  timeoutMs: SAMPLE_TIMEOUT_MS,
});

const knownQuery = defineQuery({
  name: 'eval_known_traces',
  file: 'judge_scores/known.sql',
  params: z.object({ org_id: z.string(), trace_ids: z.array(z.string()) }),
  row: z.object({ trace_id: z.string(), own: z.coerce.boolean(), from_ms: whole }),
});

/** Yields the ids in batches that fit into one statement. */
export function* idBatches(ids: readonly string[]): Generator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const id of ids) {
    // Each id of an array has quotes and a comma around it.
    const more = Buffer.byteLength(id) + 3;
    if (batch.length > 0 && bytes + more > LOOKUP_BYTES_MAX) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(id);
    bytes += more;
  }
  if (batch.length > 0) yield batch;
}

/**
 * Returns those of the given traces that any organization has; `own` is true if this one does, and
 * from_ms is the trace's start in it.
 * @param trace_ids one batch of idBatches
 */
export function knownTraces(
  client: ClickHouse,
  org_id: string,
  trace_ids: readonly string[],
  signal: AbortSignal,
): Promise<{ trace_id: string; own: boolean; from_ms: number }[]> {
  return knownQuery(client, { org_id, trace_ids: [...trace_ids] }, { signal });
}

/** Returns those of the given traces that the eval has scored. */
export async function scoredTraces(
  client: ClickHouse,
  which: Pick<ScoreRow, 'org_id' | 'judge_id' | 'eval_id'>,
  trace_ids: readonly string[],
): Promise<Set<string>> {
  const scored = new Set<string>();
  for (const batch of idBatches(trace_ids)) {
    for (const { trace_id } of await scoredQuery(client, { ...which, trace_ids: batch })) scored.add(trace_id);
  }
  return scored;
}

/** Writes scores, replacing rows with the same key. Resolves when they are on the disk. */
export async function writeScores(client: ClickHouse, rows: readonly ScoreRow[]): Promise<void> {
  if (rows.length === 0) return;
  const body = rows
    .map(({ started_ms, scored_ms, ...rest }) =>
      JSON.stringify({
        ...rest,
        started_at: storeTime(started_ms),
        scored_at: storeTime(scored_ms),
        partition: 0,
        log_seq: 0,
      }),
    )
    .join('\n');
  await client.execute({
    name: 'write_eval_scores',
    sql:
      'INSERT INTO judge_scores (org_id, judge_id, judge_version, judge_name, eval_id, trace_id, agent_id, started_at, item_index, score, verdict, reason, ' +
      'scored_at, partition, log_seq) FORMAT JSONEachRow',
    body,
    timeoutMs: WRITE_TIMEOUT_MS,
  });
}
