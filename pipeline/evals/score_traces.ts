// Scores the stored traces of an eval's chunk. It takes the chunk's ids and stores a row for each;
// a trace that no longer exists gets a row with the verdict `error`. Guarantees: a trace that has a
// row is not judged again, and one that was judged gets its row even when another trace of the
// chunk fails. Between traces the event loop gets its turn for the worker's other work.
import { setTimeout } from 'node:timers/promises';
import type { EvalRecord } from '../../schemas/records/eval.ts';
import type { JudgeRecord } from '../../schemas/records/judge.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readScoreStats, scoredTraces, type ScoreRow } from '../../sql/stores/judge_scores.ts';
import { chunkRange } from '../domain/evals/chunks.ts';
import { compileRule, RuleError, type RuleScorer } from '../domain/judging/rules.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';
import { type Runner, runRules, TRACE_STEPS_MAX } from '../domain/patterns/bounds.ts';
import { judgedTraceGroups } from '../judging/stored_traces.ts';
import { EvalFailed, type EvalRecords } from './records.ts';
import { type Judgement, scoreRow } from './rows.ts';
import { allEnded } from './settled.ts';
import type { ScoreChunk } from './worker.ts';

/** Interval at which an eval checks whether its organization has judging time again. */
const SPENT_WAIT_MS = 200;

const GONE: Judgement = { score: null, reason: 'the trace is no longer there' };

/** Context of a dataset's item for the judge, beside the answer. */
export interface ItemContext {
  item_index?: number;
  input?: unknown;
  expected?: unknown;
}

/**
 * Judges one trace.
 * @throws EvalFailed when no trace can be judged; Error when the chunk is to be retried
 */
export type JudgeTrace = (trace: JudgedTrace, signal: AbortSignal, item?: ItemContext) => Promise<Judgement>;

export interface TraceScorerOptions {
  records: EvalRecords;
  clickhouse: ClickHouse;
  /** Resolves when the rows are stored. */
  store: (rows: readonly ScoreRow[]) => Promise<void>;
  /** Returns the function by which an LLM judge judges the traces of one eval. */
  llmJudge: (record: EvalRecord, judge: JudgeRecord) => JudgeTrace;
  /** Runs rules that would take long in this thread. */
  runner: Runner;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export function createTraceScorer(options: TraceScorerOptions): ScoreChunk {
  const { records, clickhouse, store, now } = options;
  return async (record, chunk, signal) => {
    const { from, to } = chunkRange(record.progress, chunk);
    const judge = await records.judge(record);
    const judgeTrace = judgeFor(options, record, judge);
    const ids = await records.traceIds(record, from, to);
    const scored = await scoredTraces(clickhouse, record, ids);
    const left = new Set(ids.filter((trace_id) => !scored.has(trace_id)));
    const rows: ScoreRow[] = [];
    const refusals: string[] = [];
    const judgeOne = async (trace: JudgedTrace): Promise<void> => {
      const judgement = await judgeTrace(trace, signal);
      if (judgement.refused === true) refusals.push(judgement.reason);
      rows.push(scoreRow(record, judge, trace, judgement, { now: now() }));
    };
    for await (const group of judgedTraceGroups(clickhouse, record.org_id, [...left], signal)) {
      for (const { trace_id } of group) left.delete(trace_id);
      const { failure } = await allEnded(group.map(judgeOne));
      if (failure === null) continue;
      await store(rows);
      throw failure.error;
    }
    for (const trace_id of left)
      rows.push(scoreRow(record, judge, { trace_id, agent_id: '', started_at: 0 }, GONE, { now: now() }));
    await store(rows);
    if (refusals.length === rows.length) await failIfAllRefused(clickhouse, record, refusals);
  };
}

/**
 * Ends an eval whose upstream rejects every call: a wrong key or model would reject the other
 * 100,000 traces as well.
 * @param refusals rejections of a chunk that had no other results
 * @throws EvalFailed when the eval has no score at all
 */
export async function failIfAllRefused(
  clickhouse: ClickHouse,
  { org_id, judge_id, eval_id }: EvalRecord,
  refusals: readonly string[],
): Promise<void> {
  const [reason] = refusals;
  if (reason === undefined) return;
  const [stats] = await readScoreStats(clickhouse, { org_id, judge_id, eval_id });
  if (stats?.total === stats?.errors) throw new EvalFailed(reason);
}

/**
 * Returns the function by which a judge of either kind judges.
 * @throws EvalFailed when the judge cannot be used
 */
export function judgeFor(
  { llmJudge, runner }: Pick<TraceScorerOptions, 'llmJudge' | 'runner'>,
  record: EvalRecord,
  judge: JudgeRecord,
): JudgeTrace {
  return judge.kind === 'llm' ? llmJudge(record, judge) : ruleJudge(judge, runner);
}

function ruleJudge({ org_id, rule }: JudgeRecord, runner: Runner): JudgeTrace {
  if (rule === null) throw new EvalFailed('its judge has no rule');
  let scorer: RuleScorer;
  try {
    scorer = compileRule(rule);
  } catch (error) {
    if (error instanceof RuleError) throw new EvalFailed(`the rule of its judge cannot be used: ${error.message}`);
    throw error;
  }
  // One trace in each turn of the event loop: this process also reads and lands the log.
  let turn = Promise.resolve();
  return async (trace, signal) => {
    turn = turn.then(() => new Promise((resolve) => setImmediate(resolve)));
    await turn;
    const texts = scorer.texts(trace);
    if (scorer.steps(texts) <= TRACE_STEPS_MAX) return scorer(trace);
    // An eval is less urgent than live traffic: it waits until its organization has judging time
    // again.
    while (runner.isSpent(org_id)) await setTimeout(SPENT_WAIT_MS, undefined, { signal });
    const [result] = await runRules(runner, org_id, [{ rule, texts }]);
    if (result === undefined) throw new Error('a rule gave no result');
    return 'error' in result ? { score: null, reason: result.error } : result;
  };
}
