// Creates, lists, gets and cancels evals. An eval that was returned to a caller is carried out even
// if this process dies: its record is stored before the response is sent, and the workers need only
// the record.
import { randomBytes } from 'node:crypto';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { begunProgress, MODEL_CHUNK, RULE_CHUNK } from '../../../pipeline/domain/evals/chunks.ts';
import type { EvalRecord } from '../../../schemas/records/eval.ts';
import type { JudgeRecord } from '../../../schemas/records/judge.ts';
import type { PromptRecord } from '../../../schemas/records/prompt.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { idBatches, knownTraces, readScoreStats, sampleTraces } from '../../../sql/stores/judge_scores.ts';
import { ApiError } from '../../http/errors.ts';
import type { WrittenAnswers } from '../../http/written_answers.ts';
import { awaitLanding, TRACE_NOT_YET } from '../../http/landed.ts';
import { pageOf } from '../../http/list_pages.ts';
import type { PageMeta } from '../../http/pagination.ts';
import { type CreateEvalBody, type EvalItem, evalItemOf, type EvalsQuery } from './schema.ts';
import type { EvalStore } from './store.ts';

/** Maximum wait of a request that is not asynchronous. */
const WAIT_MS_MAX = 60_000;
/**
 * Maximum running evals of one organization. Several processes that create evals at once may exceed
 * it slightly.
 */
const RUNNING_MAX = 100;
/**
 * Maximum traces and items of all running evals of one organization. Their ids are in KV while the
 * evals run.
 */
export const RUNNING_TRACES_MAX = 1_000_000;
/** Maximum evals that an organization keeps. A new one replaces the oldest. */
const KEPT_MAX = 10_000;
/** Concurrent statements that look up ids; each takes thousands of ids. */
const LOOKUPS_AT_ONCE = 4;

export interface EvalsDeps {
  evals: EvalStore;
  clickhouse: ClickHouse;
  /** Returns the newest version of a judge, or null. */
  judgeOf: (org_id: string, judge_id: string) => JudgeRecord | null;
  /**
   * Resolves with the end of the period in which the quota of the organization's LLM judges is used
   * up, milliseconds since the epoch; null if there is quota left.
   */
  quotaUsedUpUntil: (org_id: string) => Promise<number | null>;
  /** True if an upstream for model calls is configured. */
  hasUpstream: boolean;
  written: WrittenAnswers;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
}

/** The traces or the dataset that an eval judges, and the judge. */
interface EvalPlan {
  judge: JudgeRecord;
  dataset: EvalRecord['dataset'];
  prompt: PromptRecord | null;
  /** Empty for a dataset run. */
  trace_ids: readonly string[];
  /** Number of traces or items. */
  total: number;
  /**
   * Resolves with whether the dataset still exists once the eval is stored. Left out for stored
   * traces.
   */
  isThere?: () => Promise<boolean>;
}

/**
 * Returns the judge of a plan. @throws ApiError judge_not_found, upstream_unavailable,
 * judge_quota_exceeded
 */
export async function judgeFor(deps: EvalsDeps, org_id: string, judge_id: string): Promise<JudgeRecord> {
  const judge = deps.judgeOf(org_id, judge_id);
  if (judge === null) throw new ApiError('judge_not_found', 'judge_id: the organization has no judge with this id.');
  if (judge.kind === 'llm') {
    const until = await deps.quotaUsedUpUntil(org_id).catch((cause: unknown) => {
      throw new ApiError('upstream_unavailable', 'The store of quotas cannot be read. Try again.', { cause });
    });
    if (until !== null)
      throw new ApiError(
        'judge_quota_exceeded',
        'The organization has used up its quota of LLM judge calls for this period (policy field judge_quota_calls).',
        {
          headers: { 'Retry-After': String(Math.max(1, Math.ceil((until - deps.now()) / 1000))) },
        },
      );
    checkUpstream(deps, 'judge_id: this judge calls a model');
  }
  return judge;
}

/** @throws ApiError upstream_unavailable */
function checkUpstream({ hasUpstream }: EvalsDeps, why: string): void {
  if (!hasUpstream)
    throw new ApiError(
      'upstream_unavailable',
      `${why}, and no upstream for models is configured (SERVICE_LLM_BASE_URL).`,
    );
}

/**
 * Serves POST /v1/evals.
 *
 * @throws ApiError judge_not_found, trace_not_found, cross_org_access, rate_limited,
 * judge_quota_exceeded, upstream_unavailable
 */
export async function createEval(
  deps: EvalsDeps,
  org_id: string,
  body: CreateEvalBody,
  signal: AbortSignal,
): Promise<EvalRecord> {
  const judge = await judgeFor(deps, org_id, body.judge_id);
  const trace_ids = await tracesOf(deps, org_id, body, signal);
  return beginEval(deps, org_id, { judge, dataset: null, prompt: null, trace_ids, total: trace_ids.length });
}

/**
 * Returns the traces that an eval judges, in the order of their time.
 *
 * @throws ApiError trace_not_found, cross_org_access
 */
export function tracesOf(
  deps: EvalsDeps,
  org_id: string,
  { trace_ids, sample }: Pick<CreateEvalBody, 'trace_ids' | 'sample'>,
  signal: AbortSignal,
): Promise<string[]> {
  if (trace_ids == null) return sampled(deps, org_id, sample ?? { limit: 1 }, signal);
  return awaitLanding(() => byTime(deps, org_id, [...new Set(trace_ids)], signal), TRACE_NOT_YET, signal);
}

/**
 * @throws ApiError rate_limited when the organization has the maximum number of running evals, or
 * of traces and items in them
 */
function checkRunning(own: readonly EvalRecord[], total: number): void {
  const running = own.filter(({ status }) => status === 'running');
  const headers = { 'Retry-After': '60' };
  if (running.length >= RUNNING_MAX)
    throw new ApiError(
      'rate_limited',
      `The organization has ${running.length} running evals, the most that it can have.`,
      {
        headers,
      },
    );
  const queued = running.reduce((sum, { progress }) => sum + progress.total, 0);
  if (queued + total <= RUNNING_TRACES_MAX) return;
  const detail = `The running evals of an organization have at most ${RUNNING_TRACES_MAX} traces and items; they have ${queued}`;
  throw new ApiError('rate_limited', `${detail}, and this one has ${total}. Wait until one has ended.`, {
    headers,
  });
}

/**
 * Stores an eval and enqueues its first chunks. @throws ApiError rate_limited, upstream_unavailable
 */
async function beginEval(deps: EvalsDeps, org_id: string, plan: EvalPlan): Promise<EvalRecord> {
  const { evals, now, onProblem } = deps;
  checkRunning(evals.list(org_id), plan.total);
  const at = now();
  const calls_model = plan.judge.kind === 'llm' || plan.dataset !== null;
  const record: EvalRecord = {
    org_id,
    eval_id: `eval_${randomBytes(8).toString('hex')}`,
    judge_id: plan.judge.judge_id,
    judge_version: plan.judge.version,
    dataset: plan.dataset,
    calls_model,
    status: 'running',
    progress: begunProgress(plan.total, calls_model ? MODEL_CHUNK : RULE_CHUNK, at),
    started_at: new Date(at).toISOString(),
    ended_at: null,
    error: null,
    stats: null,
    previous: null,
    settled: false,
  };
  try {
    await evals.create(record, plan);
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'The store of evals cannot be written to. Try again.', { cause });
  }
  await withdrawIfGone(deps, record, plan);
  // The eval is accepted now; a worker repairs what fails from here on.
  await evals.queue(record).catch((cause: unknown) => {
    onProblem('the chunks of an eval were not enqueued; a worker enqueues them', cause);
  });
  await evals.forgetOldest(org_id, KEPT_MAX).catch((cause: unknown) => {
    onProblem('old evals were not deleted', cause);
  });
  return record;
}

/**
 * Withdraws a run whose dataset was deleted while the run was being stored. A deletion marks the
 * dataset first and then looks for runs, so one of the two sees the other.
 *
 * @throws ApiError dataset_not_found, upstream_unavailable
 */
async function withdrawIfGone({ evals }: EvalsDeps, record: EvalRecord, { isThere }: EvalPlan): Promise<void> {
  if (isThere === undefined) return;
  try {
    if (await isThere()) return;
    await evals.withdraw(record);
  } catch (cause) {
    // A worker ends the eval as failed if its items no longer exist.
    throw new ApiError('upstream_unavailable', 'The store of datasets cannot be read. Try again.', { cause });
  }
  throw new ApiError('dataset_not_found', 'The dataset has just been deleted.');
}

/**
 * Starts a run of a dataset.
 *
 * @throws ApiError judge_not_found, judge_quota_exceeded, rate_limited, dataset_not_found,
 * upstream_unavailable
 */
export async function beginRun(
  deps: EvalsDeps,
  org_id: string,
  run: {
    judge_id: string;
    dataset: NonNullable<EvalRecord['dataset']>;
    prompt: PromptRecord | null;
    items: number;
    isThere: () => Promise<boolean>;
  },
): Promise<EvalRecord> {
  const judge = await judgeFor(deps, org_id, run.judge_id);
  checkUpstream(deps, 'model: a run calls a model');
  const { dataset, prompt, items: total, isThere } = run;
  return beginEval(deps, org_id, { judge, dataset, prompt, trace_ids: [], total, isThere });
}

/**
 * Resolves with the eval as the response shows it: at once if asynchronous, otherwise when it has
 * ended or after WAIT_MS_MAX.
 */
export async function answered(
  deps: EvalsDeps,
  record: EvalRecord,
  isAsync: boolean,
  signal: AbortSignal,
): Promise<EvalItem> {
  if (isAsync) return evalItemOf(record);
  const timeout = AbortSignal.timeout(WAIT_MS_MAX);
  const newest = await deps.evals.ended(record.org_id, record.eval_id, AbortSignal.any([signal, timeout]));
  return evalItemOf(newest ?? record);
}

/**
 * Serves POST /v1/evals/{eval_id}/cancel. Cancelling a cancelled eval changes nothing.
 *
 * @throws ApiError eval_not_found, conflict when the eval is complete or has failed,
 * upstream_unavailable
 */
export async function cancelEval(
  deps: EvalsDeps,
  org_id: string,
  eval_id: string,
  signal: AbortSignal,
): Promise<{ record: EvalRecord; cancelled: boolean }> {
  const { evals, clickhouse, now, onProblem } = deps;
  const { judge_id } = findEval(deps, org_id, eval_id);
  const found = await evals.cancel(org_id, eval_id, now()).catch((cause: unknown) => {
    throw new ApiError('upstream_unavailable', 'The store of evals cannot be written to. Try again.', { cause });
  });
  if (found === null) throw new ApiError('eval_not_found', 'There is no eval with this id.');
  const { record, cancelled } = found;
  if (record.status !== 'cancelled')
    throw new ApiError('conflict', `The eval is already ${record.status} and cannot be cancelled.`);
  if (record.stats !== null) return found;
  // A worker counts the scores again after it has released the last chunk, so an unavailable store
  // does no harm here.
  const counted = readScoreStats(clickhouse, { org_id, judge_id, eval_id }, { signal }).then(([stats]) =>
    evals.noteStats(record, stats ?? null),
  );
  return {
    record: await counted.catch((cause: unknown) => {
      onProblem('the scores of a cancelled eval were not counted; a worker counts them', cause);
      return record;
    }),
    cancelled,
  };
}

/** @throws ApiError eval_not_found */
export function findEval({ evals }: Pick<EvalsDeps, 'evals'>, org_id: string, eval_id: string, field = ''): EvalRecord {
  const record = evals.get(org_id, eval_id);
  if (record === null)
    throw new ApiError('eval_not_found', `${field}${field === '' ? 'There' : ': there'} is no eval with this id.`);
  return record;
}

/** Serves GET /v1/evals, newest first. */
export function listEvals(
  { evals }: EvalsDeps,
  org_id: string,
  query: EvalsQuery,
): { data: EvalItem[]; meta: PageMeta } {
  const { judge_id, dataset_id, status } = query;
  const found = evals
    .list(org_id)
    .filter((one) => judge_id === undefined || one.judge_id === judge_id)
    .filter((one) => dataset_id === undefined || one.dataset?.dataset_id === dataset_id)
    .filter((one) => status === undefined || one.status === status);
  const { data, meta } = pageOf(found, query);
  return { data: data.map(evalItemOf), meta };
}

async function sampled(
  { clickhouse }: EvalsDeps,
  org_id: string,
  { limit, since }: { limit: number; since?: number | null | undefined },
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await sampleTraces(
    clickhouse,
    { org_id, rows: limit, ...(since == null ? {} : { since_ms: since }) },
    { signal },
  );
  return rows.map(({ trace_id }) => trace_id);
}

/**
 * Returns the same ids ordered by the start of their traces, so that the traces of a chunk are
 * neighbours in the store.
 *
 * @throws ApiError trace_not_found or cross_org_access when the organization has no trace of an id
 */
async function byTime(
  { clickhouse }: EvalsDeps,
  org_id: string,
  trace_ids: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const batches = [...idBatches(trace_ids)];
  const starts = new Map<string, number>();
  for (let at = 0; at < batches.length; at += LOOKUPS_AT_ONCE) {
    const some = batches.slice(at, at + LOOKUPS_AT_ONCE);
    const known = (await Promise.all(some.map((batch) => knownTraces(clickhouse, org_id, batch, signal)))).flat();
    for (const { trace_id, own, from_ms } of known) if (own) starts.set(trace_id, from_ms);
    const missing = some.flat().find((trace_id) => !starts.has(trace_id));
    if (missing === undefined) continue;
    if (known.some(({ trace_id }) => trace_id === missing))
      throw new ApiError('cross_org_access', `trace_ids: trace ${missing} belongs to another organization.`);
    throw new ApiError('trace_not_found', `trace_ids: there is no trace ${missing}.`);
  }
  return [...starts].sort(([, a], [, b]) => a - b).map(([trace_id]) => trace_id);
}
