// Feedback of LangSmith as a score: `key` is its name, `score` or `value` its value. Pure.
import { z } from 'zod';
import type { UserScore } from '../../../schemas/codec.ts';
import { authorOf, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { foreignComment, foreignTraceId, foreignValue, scoreName, userScoreOf } from '../compat/score.ts';

export const feedbackShape = z.looseObject({
  id: z.string().max(200).nullish(),
  run_id: z.string().max(128).nullish(),
  trace_id: foreignTraceId.nullish(),
  key: scoreName,
  score: foreignValue.nullish(),
  value: z.unknown().optional(),
  comment: foreignComment,
  created_at: z.string().nullish(),
});

/** @throws ApiError invalid_request; ZodError naming the field */
export function feedbackScore(
  body: unknown,
  { credential, received_at }: { credential: OrgCredential; received_at: number },
): UserScore {
  const { id, run_id, trace_id, key, score, value, comment, created_at } = feedbackShape.parse(body);
  const trace = foreignTraceId.safeParse(trace_id ?? run_id);
  if (!trace.success) throw new ApiError('invalid_request', 'trace_id: is needed, or the run_id of the root run');
  const given =
    score ?? foreignValue.safeParse(value).data ?? (value == null ? undefined : JSON.stringify(value).slice(0, 1000));
  if (given === undefined)
    throw new ApiError('invalid_request', 'score: must be a number or a boolean, or value a text');
  return userScoreOf({
    org_id: credential.org_id,
    key: id ?? `${trace.data}\n${run_id ?? ''}\n${key}`,
    trace_id: trace.data,
    span_id: run_id == null || run_id === trace.data ? '' : run_id,
    name: key,
    value: given,
    comment: comment ?? '',
    author: authorOf(credential),
    given_at: created_at == null ? NaN : Date.parse(created_at),
    now: received_at,
  });
}
