// Routes of scores: create a score of a trace or span, list scores, delete one.
import { z } from 'zod';
import { authorOf } from '../../http/credential.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { scoreItem } from '../../http/trace_items.ts';
import { listScores } from './across.ts';
import { deleteScore } from './delete.ts';
import { deletedScore, givenScore, scoreBody, scoreParams, scoresMeta, scoresQuery } from './schema.ts';
import { giveScore, type ScoresDeps } from './scores.ts';

const TAG = 'Evaluations';

export function scoreRoutes(deps: ScoresDeps): Route[] {
  return [giveScoreRoute(deps), listScoresRoute(deps), deleteScoreRoute(deps)];
}

function giveScoreRoute(deps: ScoresDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/scores',
    operation_id: 'giveScore',
    summary: 'Create a score',
    description:
      'Scores a trace or a span on behalf of a user of the application or of a reviewer: a number, a boolean or a category. The score is stored beside those of judges, with the source `user`. A score of a trace that has not arrived is accepted with `pending: true` and attached when the trace arrives within 24 hours; after that it is dropped, and kept as a dead letter. An organization can have 10,000 waiting.',
    tag: TAG,
    permission: 'ingest:write',
    audit: { action: 'score.create', target: 'score' },
    body: scoreBody,
    example: { trace_id: 'run-1', name: 'helpful', value: true, comment: 'Found it at once' },
    status: 201,
    response: givenScore,
    errors: ['cross_org_access', 'rate_limited', 'upstream_unavailable'],
    handler: async ({ org_id, body, credential, audit, signal }) => {
      const score = await giveScore(deps, org_id, body, authorOf(credential), signal);
      if (score.score_id !== null) audit.target(score.score_id);
      audit.changes({ trace_id: score.trace_id, span_id: score.span_id });
      return { data: score };
    },
  });
}

function listScoresRoute(deps: ScoresDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/scores',
    operation_id: 'listScores',
    summary: 'List scores',
    description:
      'Returns the scores of people, applications and judges, newest first: those of one trace, of some, or of all. A list of all traces covers the 30 days before `until`, unless `since` says otherwise.',
    tag: TAG,
    permission: 'traces:read',
    resource: { type: 'trace', query: 'trace_id' },
    query: scoresQuery,
    response: z.array(scoreItem),
    meta: scoresMeta,
    errors: ['trace_not_found', 'cross_org_access'],
    handler: ({ org_id, query, signal }) => listScores(deps, org_id, query, signal),
  });
}

function deleteScoreRoute(deps: ScoresDeps): Route {
  return defineRoute({
    method: 'delete',
    path: '/v1/scores/:score_id',
    operation_id: 'deleteScore',
    summary: 'Delete a score',
    description:
      'Deletes a score of a person or an application everywhere: in the trace, lists, filters, analytics and the views of analysts. The score of another author needs `judges:write`. Scores of judges cannot be deleted. Deleting a deleted score succeeds.',
    tag: TAG,
    permission: 'ingest:write',
    audit: { action: 'score.delete', target: 'score', param: 'score_id' },
    params: scoreParams,
    response: deletedScore,
    errors: ['not_found', 'upstream_unavailable'],
    handler: async ({ credential, params: { score_id }, audit, signal }) => {
      const { changed, trace_id, name } = await deleteScore(deps, credential, score_id, signal);
      if (changed) audit.changes({ trace_id, name });
      else audit.nothing();
      return { data: { score_id, deleted: true as const } };
    },
  });
}
