// Scores in the shape of Langfuse. In: the body of a score-create event or of POST
// /api/public/scores, which holds one score or, from Python 5 on, a list. Out: scores of this service,
// or the field that is wrong.
import { z } from 'zod';
import type { UserScore } from '../../../schemas/codec.ts';
import { authorOf, type OrgCredential } from '../../http/credential.ts';
import { ApiError, describeIssues } from '../../http/errors.ts';
import { foreignComment, foreignTraceId, foreignValue, scoreName, userScoreOf } from '../compat/score.ts';

const scoreShape = z.object({
  id: z.string().min(1).max(200).nullish(),
  traceId: foreignTraceId,
  observationId: z.string().max(128).nullish(),
  name: scoreName,
  value: foreignValue,
  dataType: z.enum(['NUMERIC', 'BOOLEAN', 'CATEGORICAL', 'TEXT', 'CORRECTION']).nullish(),
  comment: foreignComment,
});
type LangfuseScore = z.output<typeof scoreShape>;

/** Maximum scores of one request; clients send at most 100. */
export const SCORES_MAX = 1000;
const one = z.toJSONSchema(scoreShape, { io: 'input' });
/** One score or a list. The handler checks it, so that an error names the field of a score. */
export const scoresShape = z
  .unknown()
  .meta({ anyOf: [one, { type: 'array', items: one, minItems: 1, maxItems: SCORES_MAX }] });

/** Scores of a list, and for each of the others why it is none. */
export interface ReadScores {
  scores: UserScore[];
  errors: { message: string }[];
}

/**
 * Returns the scores of a list. An item that is no score does not reject the others.
 * @param key id of the request, for scores without one
 * @throws ApiError invalid_request for an empty or too long list
 */
export function scoresOf(
  list: readonly unknown[],
  { credential, key, now }: { credential: OrgCredential; key: string; now: number },
): ReadScores {
  if (list.length === 0 || list.length > SCORES_MAX)
    throw new ApiError('invalid_request', `body: must hold between 1 and ${SCORES_MAX} scores`);
  const read: ReadScores = { scores: [], errors: [] };
  for (const [index, item] of list.entries()) {
    try {
      read.scores.push(scoreOf(item, { credential, key: `${key}\n${index}`, given_at: NaN, now }));
    } catch (error) {
      if (error instanceof z.ZodError) read.errors.push({ message: describeIssues(error, `[${index}]`) });
      else if (error instanceof ApiError) read.errors.push({ message: `[${index}].${error.detail}` });
      else throw error;
    }
  }
  return read;
}

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
