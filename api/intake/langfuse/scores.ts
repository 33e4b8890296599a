// Scores in the shape of Langfuse. In: the body of a score-create event or of POST
// /api/public/scores. Out: a score of this service, or the field that is wrong.
import { z } from 'zod';
import type { UserScore } from '../../../schemas/codec.ts';
import { authorOf, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { foreignComment, foreignTraceId, foreignValue, scoreName, userScoreOf } from '../compat/score.ts';

export const scoreShape = z.object({
  id: z.string().min(1).max(200).nullish(),
  traceId: foreignTraceId,
  observationId: z.string().max(128).nullish(),
  name: scoreName,
  value: foreignValue,
  dataType: z.enum(['NUMERIC', 'BOOLEAN', 'CATEGORICAL', 'TEXT', 'CORRECTION']).nullish(),
  comment: foreignComment,
});
type LangfuseScore = z.output<typeof scoreShape>;

/**
 * Returns the score.
 * @param key id of the message, for a score without one
 * @throws ApiError invalid_request; ZodError naming the field
 */
export function scoreOf(
  body: unknown,
  { credential, key, given_at, now }: { credential: OrgCredential; key: string; given_at: number; now: number },
): UserScore {
  const given = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  if (given['traceId'] == null && (given['sessionId'] != null || given['datasetRunId'] != null))
    throw new ApiError('invalid_request', 'traceId: is needed; scores of sessions and dataset runs are not stored');
  const score = scoreShape.parse(body);
  return userScoreOf({
    org_id: credential.org_id,
    key: score.id ?? key,
    trace_id: score.traceId,
    span_id: score.observationId ?? '',
    name: score.name,
    value: valueOf(score),
    comment: score.comment ?? '',
    author: authorOf(credential),
    given_at,
    now,
  });
}

/** Langfuse sends booleans as 1 and 0 with a data type. */
function valueOf({ value, dataType }: LangfuseScore): LangfuseScore['value'] {
  if (dataType === 'BOOLEAN' && (value === 0 || value === 1)) return value === 1;
  return (dataType === 'CATEGORICAL' || dataType === 'TEXT') && typeof value === 'number' ? String(value) : value;
}
