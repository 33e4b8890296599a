// Request and response shapes of evals.
import { z } from 'zod';
import { EVAL_STATUSES, type EvalRecord, evalStats } from '../../../schemas/records/eval.ts';
import { COMPARED_CHANGES } from '../../../sql/stores/judge_scores.ts';
import { doneOf } from '../../../pipeline/domain/evals/chunks.ts';
import { offsetQuery } from '../../http/pagination.ts';
import { timeParam } from '../../http/time_param.ts';

/** Maximum traces of one eval. */
export const EVAL_TRACES_MAX = 100_000;
const ID_CHARS_MAX = 128;

const sample = z.strictObject({
  limit: z.int().min(1).max(EVAL_TRACES_MAX).describe('Maximum number of traces'),
  since: timeParam.nullish().describe('Only traces that started at or after this time'),
});

const subject = {
  judge_id: z.string().min(1).max(ID_CHARS_MAX),
  trace_ids: z
    .array(z.string().min(1).max(ID_CHARS_MAX))
    .min(1)
    .max(EVAL_TRACES_MAX)
    .nullish()
    .describe('Traces to judge. A trace that is named twice is judged once'),
  sample: sample
    .nullish()
    .describe(
      'Judges a sample in place of trace_ids, spread evenly over the traces. The same sample of the same traces selects the same traces',
    ),
};

type Subject = { trace_ids?: unknown; sample?: unknown };
const NEITHER = { path: ['trace_ids'], error: 'is missing: give trace_ids or sample' };
const BOTH = { path: ['sample'], error: 'cannot be given together with trace_ids' };
const hasOne = ({ trace_ids, sample: some }: Subject): boolean => (trace_ids ?? some ?? null) !== null;
const hasNotBoth = ({ trace_ids, sample: some }: Subject): boolean =>
  (trace_ids ?? null) === null || (some ?? null) === null;

export const createEvalBody = z
  .strictObject({
    ...subject,
    async: z
      .boolean()
      .nullish()
      .describe('true returns at once. false (default) waits up to 60 seconds and returns the eval as it then is'),
  })
  .refine(hasOne, NEITHER)
  .refine(hasNotBoth, BOTH);
export const estimateEvalBody = z.strictObject(subject).refine(hasOne, NEITHER).refine(hasNotBoth, BOTH);
export type EstimateEvalBody = z.output<typeof estimateEvalBody>;
export type CreateEvalBody = z.output<typeof createEvalBody>;

const status = z.enum(EVAL_STATUSES);

export const evalItem = z
  .object({
    eval_id: z.string(),
    judge_id: z.string(),
    judge_version: z
      .int()
      .describe('Version of the judge that scores. Later changes of the judge do not affect the eval'),
    status,
    queued_traces: z.int().describe('Number of traces or items to judge'),
    progress: z.object({ done: z.int(), total: z.int() }),
    stats: evalStats
      .nullable()
      .describe(
        'null while the eval is running. For a failed or cancelled eval, statistics of the scores stored so far',
      ),
    started_at: z.iso.datetime(),
    ended_at: z.iso.datetime().nullable(),
    error: z.string().nullable().describe('Why the eval failed'),
    dataset_id: z.string().optional().describe('Dataset runs only'),
    prompt_version: z.string().nullable().optional().describe('name@version. Dataset runs only'),
    model: z.string().optional().describe('Dataset runs only'),
  })
  .meta({ id: 'Eval' });
export type EvalItem = z.infer<typeof evalItem>;

/** Returns an eval as responses show it. */
export function evalItemOf({
  eval_id,
  judge_id,
  judge_version,
  status,
  progress,
  stats,
  ...record
}: EvalRecord): EvalItem {
  const isCutShort = status === 'failed' || status === 'cancelled';
  return {
    eval_id,
    judge_id,
    judge_version,
    status,
    queued_traces: progress.total,
    // The record of an eval that ended early counts released chunks as done.
    progress: { done: isCutShort && stats !== null ? stats.total : doneOf(progress), total: progress.total },
    stats,
    started_at: record.started_at,
    ended_at: record.ended_at,
    error: status === 'failed' ? record.error : null,
    ...datasetOf(record),
  };
}

/** Returns the fields of a dataset run; none for an eval over stored traces. */
function datasetOf({
  dataset,
}: Pick<EvalRecord, 'dataset'>): Pick<EvalItem, 'dataset_id' | 'prompt_version' | 'model'> {
  if (dataset === null) return {};
  const { dataset_id, prompt_version, model } = dataset;
  return { dataset_id, prompt_version, model };
}

export const evalEstimate = z
  .object({
    judge_id: z.string(),
    judge_version: z.int(),
    queued_traces: z.int().describe('Number of traces that the eval would judge'),
    calls: z.int().describe('Model calls that it would make at least. 0 for a deterministic judge'),
    input_tokens: z.int().describe('Estimate from up to 20 of the traces, as are output_tokens and cost_usd'),
    output_tokens: z.int(),
    cost_usd: z.number().nullable().describe('null if no price of the model is known'),
  })
  .meta({ id: 'EvalEstimate' });
export type EvalEstimate = z.infer<typeof evalEstimate>;

export const evalParams = z.object({ eval_id: z.string() });

export const evalsQuery = z
  .object({
    ...offsetQuery,
    judge_id: z.string().min(1).optional().describe('Evals of this judge only'),
    dataset_id: z.string().min(1).optional().describe('Runs of this dataset only'),
    status: status.optional().describe('Evals with this status only'),
  })
  .strip();
export type EvalsQuery = z.output<typeof evalsQuery>;

const VERDICTS = ['pass', 'warn', 'fail', 'error'] as const;
const verdict = z.enum(VERDICTS);

const REPEATED = 'Repeated or comma-separated';

const listOf = <const T extends readonly [string, ...string[]]>(values: T, description: string) =>
  z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat().flatMap((text) => text.split(',')))
    .pipe(z.array(z.enum(values)).min(1))
    .optional()
    .meta({ description: `${description}. ${REPEATED}` });

export const scoresQuery = z.object({ verdict: listOf(VERDICTS, 'Scores with these verdicts only') }).strip();
export type ScoresQuery = z.output<typeof scoresQuery>;

/** One line of the score stream. */
export const scoreLine = z
  .object({
    trace_id: z.string(),
    judge_id: z.string(),
    judge_version: z.int(),
    eval_id: z.string(),
    score: z.number().nullable().describe('null if the verdict is error'),
    verdict,
    reason: z.string(),
    scored_at: z.iso.datetime(),
    item_index: z.int().optional().describe('Position of the item in the dataset, from 0. Dataset runs only'),
  })
  .meta({ id: 'ScoreLine' });
export type ScoreLine = z.infer<typeof scoreLine>;

export const compareQuery = z
  .object({
    ...offsetQuery,
    baseline: z.string().min(1).describe('eval_id'),
    candidate: z.string().min(1).describe('eval_id of an eval of the same judge'),
    sort: z
      .enum(['item', 'delta'])
      .default('item')
      .describe(
        'item: in the order of the dataset or of the trace ids. delta: largest change of the score first, up or down; items without a delta last',
      ),
    change: listOf(COMPARED_CHANGES, 'Items that changed in this way only'),
    baseline_verdict: listOf(VERDICTS, 'Items with these verdicts in the baseline only'),
    candidate_verdict: listOf(VERDICTS, 'Items with these verdicts in the candidate only'),
  })
  .strip();
export type CompareQuery = z.output<typeof compareQuery>;

const comparedEval = evalItem.pick({
  eval_id: true,
  status: true,
  stats: true,
  dataset_id: true,
  prompt_version: true,
  model: true,
});
const comparedItem = z.object({
  item_index: z.int().optional().describe('Dataset runs only'),
  trace_id: z.string().optional().describe('Evals over stored traces only'),
  baseline_trace_id: z
    .string()
    .nullable()
    .optional()
    .describe('Trace of the answer that was judged. Dataset runs only'),
  candidate_trace_id: z.string().nullable().optional(),
  baseline_score: z.number().nullable(),
  candidate_score: z.number().nullable(),
  delta: z.number().nullable().describe('candidate_score minus baseline_score; null if one of them is missing'),
  baseline_verdict: verdict.nullable(),
  candidate_verdict: verdict.nullable(),
  baseline_reason: z.string().nullable(),
  candidate_reason: z.string().nullable(),
  change: z.enum(COMPARED_CHANGES).describe('How the score changed from the baseline to the candidate'),
});
export type ComparedItem = z.infer<typeof comparedItem>;

const meanDifference = z.object({
  pairs: z.int().describe('Items with a score in both evals'),
  mean: z.number().describe('Mean of candidate_score minus baseline_score over the pairs'),
  half_width: z.number().nullable().describe('Half the width of the interval; null for fewer than two pairs'),
  low: z.number().nullable().describe('Lower end of the 95 % confidence interval of the mean (paired t test)'),
  high: z.number().nullable().describe('Upper end of the interval'),
  is_beyond_chance: z
    .boolean()
    .describe(
      'Whether the interval excludes 0. If every pair differs by the same amount, the two-sided sign test decides at the same level',
    ),
});

export const evalComparison = z
  .object({
    baseline: comparedEval,
    candidate: comparedEval,
    improved: z.int().describe('Items whose score is higher in the candidate'),
    regressed: z.int().describe('Items whose score is lower in the candidate'),
    unchanged: z.int(),
    incomparable: z.int().describe('Items without a score in one of the two evals'),
    difference: meanDifference.nullable().describe('null if no item has a score in both evals'),
    items: z.array(comparedItem).describe('One page of the items that the filters keep'),
  })
  .meta({ id: 'EvalComparison' });
export type EvalComparison = z.infer<typeof evalComparison>;
