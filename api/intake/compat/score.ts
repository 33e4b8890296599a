// Scores as clients of other services send them. In: an id that stays the same when the score is
// sent again, and its fields. Out: a score for the queue of scores whose trace may not have arrived.
// Pure.
import { hash } from 'node:crypto';
import { z } from 'zod';
import type { UserScore } from '../../../schemas/codec.ts';
import { scoreColumns } from '../../http/score_values.ts';

const DAY_MS = 86_400_000;
const COMMENT_CHARS_MAX = 10_000;
const CATEGORY_CHARS_MAX = 1000;

/** A trace id as every path accepts it. */
export const foreignTraceId = z
  .string({ error: 'must be a trace id' })
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/, { error: 'must be 1 to 128 of letters, digits, _ . : -' });

export const scoreName = z.string({ error: 'must be a text' }).trim().min(1).max(200);

/** A value of a score; a longer category is no category. */
export const foreignValue = z.union([z.number(), z.boolean(), z.string().min(1).max(CATEGORY_CHARS_MAX)], {
  error: `must be a number, true or false, or a category of 1 to ${CATEGORY_CHARS_MAX} characters`,
});

export const foreignComment = z.string().max(COMMENT_CHARS_MAX).nullish();

export interface ForeignScore {
  org_id: string;
  /** Id that the client gave, or that of its message. */
  key: string;
  trace_id: string;
  span_id: string;
  name: string;
  value: number | boolean | string;
  comment: string;
  author: { type: 'user' | 'api_key'; id: string };
  /** Time that the client gave; NaN for none. */
  given_at: number;
  /** Milliseconds since the epoch. */
  now: number;
}

/** Returns the score with an id of its own, which follows from the client's. */
export function userScoreOf(score: ForeignScore): UserScore {
  const { org_id, key, trace_id, span_id, name, value, comment, author, given_at, now } = score;
  const isNear = given_at <= now && given_at > now - DAY_MS;
  return {
    score_id: `score_${hash('sha256', `${org_id}\n${key}`, 'hex').slice(0, 32)}`,
    org_id,
    trace_id,
    span_id,
    trace_started_at: 0,
    name,
    ...scoreColumns(value),
    comment,
    author_type: author.type,
    author_id: author.id,
    // The client's time is the same when it sends the score again, so a repetition changes nothing.
    created_at: isNear ? Math.floor(given_at) : now,
  };
}
