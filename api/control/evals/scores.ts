// Streams the scores of an eval as lines, and compares two evals. However many scores there are, a
// few blocks of them are in memory at a time, read no faster than the caller reads; if the store
// fails in the middle, the response breaks off.
import type { ServerResponse } from 'node:http';
import type { EvalRecord } from '../../../schemas/records/eval.ts';
import { meanDifference } from '../../../pipeline/domain/evals/mean_difference.ts';
import { isSameSubject } from '../../../pipeline/domain/evals/regression.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { readComparison, readComparisonTotals, streamScores } from '../../../sql/stores/judge_scores.ts';
import { ApiError } from '../../http/errors.ts';
import { type PageMeta, pageMetaOf } from '../../http/pagination.ts';
import { writePart } from '../../http/written_answers.ts';
import { type EvalsDeps, findEval } from './evals.ts';
import {
  type ComparedItem,
  type CompareQuery,
  type EvalComparison,
  evalItemOf,
  type ScoreLine,
  type ScoresQuery,
} from './schema.ts';

/** Serves GET /v1/evals/{eval_id}/scores: writes the scores stored so far and ends the response. */
export async function writeScoreLines(
  clickhouse: ClickHouse,
  record: EvalRecord,
  { verdict }: ScoresQuery,
  res: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { org_id, judge_id, eval_id, dataset } = record;
  const params = {
    org_id,
    judge_id,
    eval_id,
    ...(verdict === undefined ? {} : { verdicts: verdict }),
    ...(dataset === null ? {} : { by_item: true as const }),
  };
  const blocks = streamScores.stream(clickhouse, params, { signal });
  // The status is sent with the first rows: an unavailable store is a 502, not half a file.
  let block = await blocks.next();
  res.writeHead(200, {
    'Content-Type': 'application/x-ndjson',
    'Content-Disposition': `attachment; filename="${eval_id}.ndjson"`,
  });
  for (; block.done !== true; block = await blocks.next()) {
    const lines = block.value.map(({ item_index, ...row }) => {
      const line: ScoreLine = {
        trace_id: row.trace_id,
        judge_id,
        judge_version: row.judge_version,
        eval_id,
        score: row.score,
        verdict: row.verdict,
        reason: row.reason,
        scored_at: row.scored_at,
      };
      return `${JSON.stringify(dataset === null ? line : { ...line, item_index })}\n`;
    });
    if (lines.length > 0) await writePart(res, lines.join(''), signal);
  }
  res.end();
}

const NOTHING_COMPARED = {
  total: 0,
  improved: 0,
  regressed: 0,
  unchanged: 0,
  incomparable: 0,
  mean_delta: null,
  deviation: null,
};

/** Serves GET /v1/evals/compare. @throws ApiError eval_not_found, invalid_request */
export async function compareEvals(
  deps: EvalsDeps,
  org_id: string,
  query: CompareQuery,
  signal: AbortSignal,
): Promise<{ data: EvalComparison; meta: PageMeta }> {
  const { limit, offset } = query;
  const baseline = findEval(deps, org_id, query.baseline, 'baseline');
  const candidate = findEval(deps, org_id, query.candidate, 'candidate');
  if (baseline.judge_id !== candidate.judge_id)
    throw new ApiError('invalid_request', 'candidate: must be an eval of the same judge as baseline');
  if (baseline.eval_id === candidate.eval_id)
    throw new ApiError('invalid_request', 'candidate: must be another eval than baseline');
  if (baseline.dataset?.dataset_id !== candidate.dataset?.dataset_id)
    throw new ApiError('invalid_request', 'candidate: must be over the same dataset as baseline');
  if (!isSameSubject(baseline, candidate))
    throw new ApiError(
      'invalid_request',
      'candidate: has other items than baseline, since the dataset was deleted and created again in between',
    );
  const isRun = baseline.dataset !== null;
  const pair = {
    org_id,
    judge_id: baseline.judge_id,
    baseline: baseline.eval_id,
    candidate: candidate.eval_id,
    ...(isRun ? {} : { by_trace: true as const }),
    ...filtersOf(query),
  };
  const page = { rows: limit, skip: offset, ...(query.sort === 'delta' ? { by_delta: true as const } : {}) };
  const [[totals], rows] = await Promise.all([
    readComparisonTotals(deps.clickhouse, pair, { signal }),
    readComparison(deps.clickhouse, { ...pair, ...page }, { signal }),
  ]);
  const { total, mean_delta: mean, deviation, ...counts } = totals ?? NOTHING_COMPARED;
  const pairs = counts.improved + counts.regressed + counts.unchanged;
  return {
    data: {
      baseline: sideOf(baseline),
      candidate: sideOf(candidate),
      ...counts,
      difference: meanDifference({ pairs, mean, deviation }),
      items: rows.map((row) => comparedItemOf(row, isRun)),
    },
    meta: pageMetaOf(total, limit, offset),
  };
}

function filtersOf({ change, baseline_verdict, candidate_verdict }: CompareQuery) {
  return {
    ...(change === undefined ? {} : { changes: change }),
    ...(baseline_verdict === undefined ? {} : { baseline_verdicts: baseline_verdict }),
    ...(candidate_verdict === undefined ? {} : { candidate_verdicts: candidate_verdict }),
  };
}

function sideOf(record: EvalRecord): EvalComparison['baseline'] {
  const { eval_id, status, stats, dataset_id, prompt_version, model } = evalItemOf(record);
  return { eval_id, status, stats, ...(dataset_id === undefined ? {} : { dataset_id, prompt_version, model }) };
}

function comparedItemOf(row: Awaited<ReturnType<typeof readComparison>>[number], isRun: boolean): ComparedItem {
  const orNull = <T extends string>(text: T | ''): T | null => (text === '' ? null : text);
  const { baseline_trace_id, candidate_trace_id } = row;
  const which = isRun
    ? {
        item_index: row.item_index,
        baseline_trace_id: orNull(baseline_trace_id),
        candidate_trace_id: orNull(candidate_trace_id),
      }
    : { trace_id: baseline_trace_id === '' ? candidate_trace_id : baseline_trace_id };
  return {
    ...which,
    baseline_score: row.baseline_score,
    candidate_score: row.candidate_score,
    delta: row.delta,
    baseline_verdict: orNull(row.baseline_verdict),
    candidate_verdict: orNull(row.candidate_verdict),
    baseline_reason: row.baseline_verdict === '' ? null : row.baseline_reason,
    candidate_reason: row.candidate_verdict === '' ? null : row.candidate_reason,
    change: row.change,
  };
}
