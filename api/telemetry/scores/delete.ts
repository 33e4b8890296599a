// Deletes a score of a person or an application. The deletion goes through the queue of the scores:
// once this is answered, the deletion is stored in the log, even if this process dies. A score that
// lands later, or again, stays deleted.
import { scoreDeletion } from '../../../schemas/score_deletion.ts';
import { authorOf, may, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { awaitLanding } from '../../http/landed.ts';
import type { ScoresDeps } from './scores.ts';
import { readScore } from './store.ts';

/** Permission to delete the score of another author. */
const OTHERS_PERMISSION = 'judges:write';

export interface Deleted {
  /** False if the score had been deleted before. */
  changed: boolean;
  trace_id: string;
  name: string;
}

/**
 * Deletes a score. A score that is not found may still be landing, so the lookup is repeated for a
 * short while. Deleting a deleted score succeeds and changes nothing.
 *
 * @throws ApiError not_found; forbidden for the score of another author without judges:write;
 * upstream_unavailable
 */
export async function deleteScore(
  deps: Pick<ScoresDeps, 'clickhouse' | 'queue'>,
  caller: OrgCredential,
  score_id: string,
  signal: AbortSignal,
): Promise<Deleted> {
  const { org_id } = caller;
  const rows = await awaitLanding(() => find(deps, org_id, score_id, signal), ['not_found'], signal);
  const score = rows.at(-1);
  if (score === undefined) throw notFound(score_id);
  const { trace_id, name } = score;
  // A deletion may land before its score; both name their author.
  const author = authorOf(caller);
  const isOwn = score.author_type === author.type && score.author_id === author.id;
  if (!isOwn && !may(caller, OTHERS_PERMISSION))
    throw new ApiError('forbidden', `Scores of other authors can be deleted only with ${OTHERS_PERMISSION}.`);
  if (rows.some((row) => row.name === '')) return { changed: false, trace_id, name };
  const deletion = scoreDeletion(
    { score_id, org_id, trace_id, trace_started_at: score.started_ms, created_at: score.created_ms },
    { author_type: author.type, author_id: author.id },
  );
  try {
    await deps.queue(deletion);
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'The deletion could not be stored. Send it again.', { cause });
  }
  return { changed: true, trace_id, name };
}

async function find(
  { clickhouse }: Pick<ScoresDeps, 'clickhouse'>,
  org_id: string,
  score_id: string,
  signal: AbortSignal,
): ReturnType<typeof readScore> {
  const rows = await readScore(clickhouse, { org_id, score_id }, { signal });
  if (rows.length === 0) throw notFound(score_id);
  return rows;
}

const notFound = (score_id: string) => new ApiError('not_found', `There is no score ${score_id}.`);
