// Routes of scores: create a score of a trace or span, and list the scores of a trace.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { scoreItem } from '../../http/trace_items.ts';
import { scoreBody, scoresQuery } from './schema.ts';
import { giveScore, listScores, type ScoresDeps } from './scores.ts';

const TAG = 'Evaluations';

export function scoreRoutes(deps: ScoresDeps): Route[] {
  return [giveScoreRoute(deps), listScoresRoute(deps)];
}

function giveScoreRoute(deps: ScoresDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/scores',
    operation_id: 'giveScore',
    summary: 'Create a score',
    description:
      'Scores a trace or a span on behalf of a user of the application or of a reviewer: a number, a boolean or a category. The score is stored beside those of judges, with the source `user`.',
    tag: TAG,
    permission: 'ingest:write',
    audit: { action: 'score.create', target: 'score' },
    body: scoreBody,
    example: { trace_id: 'run-1', name: 'helpful', value: true, comment: 'Found it at once' },
    status: 201,
    response: scoreItem,
    errors: ['trace_not_found', 'cross_org_access', 'upstream_unavailable'],
    handler: async ({ org_id, body, credential, audit, signal }) => {
      const author =
        credential.kind === 'api_key'
          ? { type: 'api_key' as const, id: credential.key_id }
          : { type: 'user' as const, id: credential.user_id };
      const score = await giveScore(deps, org_id, body, author, signal);
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
    summary: 'List the scores of a trace',
    description: 'Returns the scores of people, applications and judges, newest first.',
    tag: TAG,
    permission: 'traces:read',
    resource: { type: 'trace', query: 'trace_id' },
    query: scoresQuery,
    response: z.array(scoreItem),
    meta: pageMeta,
    errors: ['trace_not_found', 'cross_org_access'],
    handler: ({ org_id, query, signal }) => listScores(deps, org_id, query, signal),
  });
}
