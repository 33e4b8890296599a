// Routes of evals: create, list, get, cancel, read the scores, and compare two.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type ResourceName, type Route, STREAMED } from '../../http/route.ts';
import { WRITTEN_AS_READ } from '../../http/written_answers.ts';
import { type EstimateDeps, estimateEval } from './estimate.ts';
import { answered, cancelEval, createEval, type EvalsDeps, findEval, listEvals } from './evals.ts';
import {
  compareQuery,
  createEvalBody,
  estimateEvalBody,
  evalEstimate,
  evalComparison,
  evalItem,
  evalItemOf,
  evalParams,
  evalsQuery,
  scoreLine,
  scoresQuery,
} from './schema.ts';
import { compareEvals, writeScoreLines } from './scores.ts';

const TAG = 'Evals';

export function evalRoutes(deps: EstimateDeps): Route[] {
  return [
    createEvalRoute(deps),
    estimateEvalRoute(deps),
    listEvalsRoute(deps),
    compareEvalsRoute(deps),
    getEvalRoute(deps),
    cancelEvalRoute(deps),
    streamEvalScoresRoute(deps),
  ];
}

function createEvalRoute(deps: EvalsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/evals',
    operation_id: 'createEval',
    summary: 'Create an eval',
    description:
      'Runs a judge over stored traces: those in `trace_ids`, or an even sample. The judge is used at its current version, whether enabled or not. With `async` true the response comes at once: poll `GET /v1/evals/{eval_id}` until `status` is no longer `running`. Otherwise the request waits up to 60 seconds for the eval to end, and returns the eval as it then is.',
    tag: TAG,
    permission: 'judges:run',
    resource: { type: 'judge', body: 'judge_id' },
    audit: { action: 'eval.create', target: 'eval' },
    body: createEvalBody,
    example: {
      judge_id: 'judge_0123456789abcdef',
      sample: { limit: 500, since: '2026-01-01T00:00:00Z' },
      async: true,
    },
    response: evalItem,
    errors: ['judge_not_found', 'trace_not_found', 'cross_org_access', 'judge_quota_exceeded', 'upstream_unavailable'],
    handler: async ({ org_id, body, audit, signal }) => {
      const record = await createEval(deps, org_id, body, signal);
      audit.target(record.eval_id);
      audit.changes({
        judge_id: record.judge_id,
        judge_version: record.judge_version,
        queued_traces: record.progress.total,
      });
      return { data: await answered(deps, record, body.async === true, signal) };
    },
  });
}

function estimateEvalRoute(deps: EstimateDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/evals/estimate',
    operation_id: 'estimateEval',
    summary: 'Estimate an eval',
    description:
      'Says how many traces an eval would judge, how many model calls it would make, and what they would cost, by the texts of up to 20 of the traces. Starts nothing.',
    tag: TAG,
    permission: 'judges:run',
    resource: { type: 'judge', body: 'judge_id' },
    audit: null,
    body: estimateEvalBody,
    example: { judge_id: 'judge_0123456789abcdef', sample: { limit: 500 } },
    response: evalEstimate,
    errors: ['judge_not_found', 'trace_not_found', 'cross_org_access', 'judge_quota_exceeded', 'upstream_unavailable'],
    handler: async ({ org_id, body, signal }) => ({ data: await estimateEval(deps, org_id, body, signal) }),
  });
}

function listEvalsRoute(deps: EvalsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/evals',
    operation_id: 'listEvals',
    summary: 'List evals',
    description: 'Returns the evals and dataset runs of the organization, newest first.',
    tag: TAG,
    permission: 'judges:read',
    query: evalsQuery,
    response: z.array(evalItem),
    meta: pageMeta,
    handler: ({ org_id, query }) => listEvals(deps, org_id, query),
  });
}

function compareEvalsRoute(deps: EvalsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/evals/compare',
    operation_id: 'compareEvals',
    summary: 'Compare two evals',
    description:
      'Compares two evals of the same judge item by item: two runs of a dataset by item, two evals over stored traces by trace. The counts and `difference`, the mean difference of the scores with its 95 % confidence interval, cover all items. `items` is one page of those that the filters keep; `meta.total` counts them.',
    tag: TAG,
    permission: 'judges:read',
    query: compareQuery,
    response: evalComparison,
    meta: pageMeta,
    errors: ['eval_not_found'],
    handler: ({ org_id, query, signal }) => compareEvals(deps, org_id, query, signal),
  });
}

function getEvalRoute(deps: EvalsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/evals/:eval_id',
    operation_id: 'getEval',
    summary: 'Get an eval',
    description: 'Returns the progress of an eval, and its statistics once it has ended.',
    tag: TAG,
    permission: 'judges:read',
    resource: judgeOfEval(deps),
    params: evalParams,
    response: evalItem,
    errors: ['eval_not_found'],
    handler: ({ org_id, params }) => ({ data: evalItemOf(findEval(deps, org_id, params.eval_id)) }),
  });
}

function cancelEvalRoute(deps: EvalsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/evals/:eval_id/cancel',
    operation_id: 'cancelEval',
    summary: 'Cancel an eval',
    description:
      'Cancels a running eval or dataset run. The status changes to `cancelled` at once. Scores stored so far stay and count in `stats`. Workers abort the model calls in progress and make no further ones; a score that is being written may still appear within a few seconds. A cancelled eval sends no `judge.regression` and is not the baseline of one. Cancelling a cancelled eval changes nothing; an eval that is complete or has failed returns 409 `conflict`.',
    tag: TAG,
    permission: 'judges:run',
    resource: judgeOfEval(deps),
    audit: { action: 'eval.cancel', target: 'eval', param: 'eval_id' },
    params: evalParams,
    response: evalItem,
    errors: ['eval_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ org_id, params, audit, signal }) => {
      const { record, cancelled } = await cancelEval(deps, org_id, params.eval_id, signal);
      if (cancelled) audit.changes({ status: { from: 'running', to: 'cancelled' } });
      else audit.nothing();
      return { data: evalItemOf(record) };
    },
  });
}

function streamEvalScoresRoute(deps: EvalsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/evals/:eval_id/scores',
    operation_id: 'streamEvalScores',
    summary: 'Stream the scores of an eval',
    description: `Returns one JSON object per line, in the order of trace ids or, for a dataset run, of items. While the eval is running, the stream has the scores stored so far. ${WRITTEN_AS_READ}`,
    tag: TAG,
    permission: 'judges:read',
    resource: judgeOfEval(deps),
    params: evalParams,
    query: scoresQuery,
    response: scoreLine,
    media: ['application/x-ndjson'],
    errors: ['eval_not_found'],
    handler: async ({ org_id, params, query, res, signal }) => {
      const record = findEval(deps, org_id, params.eval_id);
      await deps.written.run(org_id, signal, () => writeScoreLines(deps.clickhouse, record, query, res, signal));
      return STREAMED;
    },
  });
}

/**
 * Returns how to find the judge of the eval in the path: a grant on a judge covers the evals of
 * that judge.
 */
function judgeOfEval({ evals }: EvalsDeps): ResourceName {
  return {
    type: 'judge',
    find: (org_id, { eval_id }) => (typeof eval_id === 'string' ? evals.get(org_id, eval_id)?.judge_id : undefined),
  };
}
