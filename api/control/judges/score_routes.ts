// Routes of what judges said of live traffic, and of the versions of a judge.
import { z } from 'zod';
import { cursorMeta, pageQuery } from '../../http/list_pages.ts';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { listVersions } from './judges.ts';
import { judgeItem, judgeParams } from './schema.ts';
import { judgeStats, judgeSummary, liveScore, liveScoresQuery, statsQuery } from './score_schema.ts';
import { type JudgeScoresDeps, listLiveScores, readAllStats, readJudgeStats } from './scores.ts';

const TAG = 'Judges';
const ONE = '/v1/judges/:judge_id';
const resource = { type: 'judge', param: 'judge_id' } as const;

/** Returns the routes; the one that has no judge in its path comes before those that do. */
export function judgeScoreRoutes(deps: JudgeScoresDeps): Route[] {
  return [allJudgeStatsRoute(deps), liveScoresRoute(deps), judgeStatsRoute(deps), judgeVersionsRoute(deps)];
}

function allJudgeStatsRoute(deps: JudgeScoresDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/judges/stats',
    operation_id: 'listJudgeStats',
    summary: 'Get statistics of all judges',
    description:
      'Returns, for each judge of the organization, how it judged live traces in the asked days, and its last breach in them. Scores of evals do not count.',
    tag: TAG,
    permission: 'judges:read',
    query: statsQuery,
    response: z.array(judgeSummary),
    handler: async ({ org_id, query, signal }) => ({ data: await readAllStats(deps, org_id, query.days, signal) }),
  });
}

function liveScoresRoute(deps: JudgeScoresDeps): Route {
  return defineRoute({
    method: 'get',
    path: `${ONE}/scores`,
    operation_id: 'listLiveScores',
    summary: 'List live scores of a judge',
    description:
      'Returns the scores that the judge gave live traces in the asked days, newest first. Scores of evals are at `GET /v1/evals/{eval_id}/scores`.',
    tag: TAG,
    permission: 'judges:read',
    resource,
    params: judgeParams,
    query: liveScoresQuery,
    response: z.array(liveScore),
    meta: cursorMeta,
    errors: ['judge_not_found'],
    handler: ({ org_id, params, query, signal }) => listLiveScores(deps, org_id, params.judge_id, query, signal),
  });
}

function judgeStatsRoute(deps: JudgeScoresDeps): Route {
  return defineRoute({
    method: 'get',
    path: `${ONE}/stats`,
    operation_id: 'getJudgeStats',
    summary: 'Get statistics of a judge',
    description:
      'Returns the pass rate and the mean score of the judge on live traces, in all and by day and version of the judge.',
    tag: TAG,
    permission: 'judges:read',
    resource,
    params: judgeParams,
    query: statsQuery,
    response: judgeStats,
    errors: ['judge_not_found'],
    handler: async ({ org_id, params, query, signal }) => ({
      data: await readJudgeStats(deps, org_id, params.judge_id, query.days, signal),
    }),
  });
}

function judgeVersionsRoute(deps: JudgeScoresDeps): Route {
  return defineRoute({
    method: 'get',
    path: `${ONE}/versions`,
    operation_id: 'listJudgeVersions',
    summary: 'List versions of a judge',
    description:
      'Returns the definitions of the judge, newest version first. Of older versions, the newest 50 are kept; scores stay.',
    tag: TAG,
    permission: 'judges:read',
    resource,
    params: judgeParams,
    query: pageQuery,
    response: z.array(judgeItem),
    meta: pageMeta,
    errors: ['judge_not_found'],
    handler: ({ org_id, params, query }) => listVersions(deps, org_id, params.judge_id, query),
  });
}
