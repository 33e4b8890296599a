// The deletion of a score of a person or an application, in the form in which it is stored: a score
// with the same id and an empty name, which no score has.
import type { UserScore } from './codec.ts';

/** The score that is deleted, as far as its deletion needs it. */
export type DeletedScore = Pick<UserScore, 'score_id' | 'org_id' | 'trace_id' | 'trace_started_at' | 'created_at'>;

/**
 * Returns the record that deletes a score. It has the times of the score, so that both expire at
 * once.
 * @param by who deletes it
 */
export function scoreDeletion(
  { score_id, org_id, trace_id, trace_started_at, created_at }: DeletedScore,
  by: Pick<UserScore, 'author_type' | 'author_id'>,
): UserScore {
  return {
    score_id,
    org_id,
    trace_id,
    span_id: '',
    trace_started_at,
    name: '',
    data_type: 'categorical',
    number: null,
    text: '',
    comment: '',
    author_type: by.author_type,
    author_id: by.author_id,
    created_at,
  };
}

/** Returns the id under which the stream recognizes a repeated publication of a record. */
export const scoreMessageId = ({ score_id, name }: Pick<UserScore, 'score_id' | 'name'>): string =>
  name === '' ? `${score_id}-deleted` : score_id;
