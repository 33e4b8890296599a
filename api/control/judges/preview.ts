// Judges stored traces by a draft of a judge. A worker judges them, by the code that judges live
// traffic; this process checks the draft and the quota. Nothing is stored but the spans of model
// calls. Bounded in traces and in time; the worker stops when the caller goes.
import type { PreviewCallResult } from '../../../ops/exchange/preview_calls.ts';
import type { JudgeRecord } from '../../../schemas/records/judge.ts';
import type { PreviewCall, PreviewResult } from '../../../schemas/signals/judge_previews.ts';
import { ApiError } from '../../http/errors.ts';
import { draftOf } from './judges.ts';
import type { PreviewAnswer, PreviewBody } from './preview_schema.ts';

/** Maximum wait for the verdicts: rules take at most half a second a trace, models a minute a call. */
const RULE_WAIT_MS_MAX = 15_000;
const MODEL_WAIT_MS_MAX = 110_000;
/** Identifies the draft in the spans of its model calls. */
const DRAFT_ID = 'judge_preview';

export interface PreviewDeps {
  /** Has a worker carry out a preview. */
  preview: (call: PreviewCall, options: { waitMs: number; signal: AbortSignal }) => Promise<PreviewCallResult>;
  /** Resolves with the quota of LLM judge calls and the end of its period, milliseconds. */
  quotaOf: (org_id: string) => Promise<{ limit: number | null; used: number; end: number }>;
  /** True if an upstream for model calls is configured. */
  hasUpstream: boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * Serves POST /v1/judges/preview.
 *
 * @throws ApiError invalid_request, invalid_rubric, judge_quota_exceeded, rate_limited,
 * upstream_unavailable
 */
export async function previewJudge(
  deps: PreviewDeps,
  org_id: string,
  { draft, trace_ids, dry }: PreviewBody,
  signal: AbortSignal,
): Promise<PreviewAnswer> {
  const judge = checkedDraft(draft, { org_id, judge_id: DRAFT_ID, now: deps.now() });
  const isDry = dry === true;
  if (!isDry) await checkQuota(deps, judge);
  const { verdicts, ...rest } = await judgeBy(deps, { org_id, judge, trace_ids, dry: isDry }, signal);
  const quota = judge.kind === 'llm' ? await readQuota(deps, org_id) : null;
  return {
    dry: isDry,
    verdicts,
    ...rest,
    quota: quota === null ? null : { limit: quota.limit, used: quota.used },
  };
}

/** Returns the judge of a draft; an error names the field within the body of the request. */
function checkedDraft(...given: Parameters<typeof draftOf>): JudgeRecord {
  try {
    return draftOf(...given);
  } catch (cause) {
    if (!(cause instanceof ApiError)) throw cause;
    throw new ApiError(cause.code, `draft.${cause.detail}`.replace('draft.body:', 'draft:'), { cause });
  }
}

/**
 * Has a worker judge traces, or price their judgements.
 *
 * @throws ApiError rate_limited, upstream_unavailable
 */
export async function judgeBy(
  { preview, hasUpstream }: Pick<PreviewDeps, 'preview' | 'hasUpstream'>,
  call: PreviewCall,
  signal: AbortSignal,
): Promise<PreviewResult> {
  const isModel = call.judge.kind === 'llm';
  if (isModel && !hasUpstream) throw noUpstream();
  const waitMs = isModel && !call.dry ? MODEL_WAIT_MS_MAX : RULE_WAIT_MS_MAX;
  const end = await preview(call, { waitMs, signal });
  switch (end.state) {
    case 'ended':
      return end.result;
    case 'busy':
      throw new ApiError('rate_limited', 'The workers carry out as many previews as they take. Try again.', {
        headers: { 'Retry-After': '2' },
      });
    case 'no_upstream':
      throw noUpstream();
    case 'late':
      throw new ApiError('upstream_unavailable', `The preview took longer than ${waitMs / 1000} seconds.`);
    case 'unheard':
      throw new ApiError('upstream_unavailable', 'No pipeline worker is available to judge. Try again.');
    case 'failed':
      throw new ApiError('upstream_unavailable', 'The traces cannot be judged now. Try again.');
  }
}

const noUpstream = () =>
  new ApiError(
    'upstream_unavailable',
    'draft.model: this judge calls a model, and no upstream for models is configured (SERVICE_LLM_BASE_URL).',
  );

/** @throws ApiError judge_quota_exceeded, upstream_unavailable */
async function checkQuota(deps: PreviewDeps, { kind, org_id }: JudgeRecord): Promise<void> {
  if (kind !== 'llm') return;
  const { limit, used, end } = await readQuota(deps, org_id);
  if (limit === null || used < limit) return;
  throw new ApiError(
    'judge_quota_exceeded',
    'The organization has used up its quota of LLM judge calls for this period (policy field judge_quota_calls).',
    { headers: { 'Retry-After': String(Math.max(1, Math.ceil((end - deps.now()) / 1000))) } },
  );
}

/** @throws ApiError upstream_unavailable */
async function readQuota({ quotaOf }: PreviewDeps, org_id: string): ReturnType<PreviewDeps['quotaOf']> {
  try {
    return await quotaOf(org_id);
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'The store of quotas cannot be read. Try again.', { cause });
  }
}
