// Routes of judges: create, preview, list, get, update, disable.
import { z } from 'zod';
import { cursorMeta } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { changeJudge, createJudge, getJudge, itemOf, type JudgesDeps, listJudges } from './judges.ts';
import { type PreviewDeps, previewJudge } from './preview.ts';
import { previewAnswer, previewBody } from './preview_schema.ts';
import { judgeScoreRoutes } from './score_routes.ts';
import type { JudgeScoresDeps } from './scores.ts';
import { createBody, createdJudge, deletedJudge, judgeItem, judgeParams, listQuery, patchBody } from './schema.ts';

const TAG = 'Judges';
const ROOT = '/v1/judges';
const ONE = `${ROOT}/:judge_id`;
const resource = { type: 'judge', param: 'judge_id' } as const;

export type JudgeRoutesDeps = JudgeScoresDeps & PreviewDeps;

export function judgeRoutes(deps: JudgeRoutesDeps): Route[] {
  return [
    createJudgeRoute(deps),
    previewJudgeRoute(deps),
    listJudgesRoute(deps),
    ...judgeScoreRoutes(deps),
    getJudgeRoute(deps),
    changeJudgeRoute(deps),
    deleteJudgeRoute(deps),
  ];
}

function createJudgeRoute(deps: JudgesDeps): Route {
  return defineRoute({
    method: 'post',
    path: ROOT,
    operation_id: 'createJudge',
    summary: 'Create a judge',
    description:
      'A `deterministic` judge checks a rule on each complete trace in its scope and scores 1 or 0; the score is part of `trace.completed` and is stored. An `llm` judge asks a model to apply its rubric after the trace is complete, at most once per `cooldown_seconds` for each agent.\n\nA live score below `threshold.warn` (below `threshold.pass` if `warn` is not set) sends `judge.threshold_breach`; evals send none. An organization has at most 2,000 judges, 200 of them enabled, with 16 MiB in all and 256 KiB each; past that, the request fails with 409 `conflict`.',
    tag: TAG,
    permission: 'judges:write',
    audit: { action: 'judge.create', target: 'judge' },
    body: createBody,
    example: {
      name: 'No apologies',
      kind: 'deterministic',
      rule: { type: 'regex_absent', pattern: '(?i)as an ai language model', fields: ['response'] },
      threshold: { pass: 1 },
      scope: { source_format: ['chatcompletion'] },
    },
    status: 201,
    response: createdJudge,
    errors: ['invalid_rubric', 'conflict'],
    handler: async ({ org_id, body, audit }) => {
      const record = await createJudge(deps, org_id, body);
      const { judge_id, version, created_at, name, kind, enabled } = record;
      audit.target(judge_id);
      audit.changes({ name, kind, enabled, version });
      return { data: { judge_id, version, created_at } };
    },
  });
}

function previewJudgeRoute(deps: PreviewDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ROOT}/preview`,
    operation_id: 'previewJudge',
    summary: 'Preview a judge',
    description:
      'Judges up to 20 stored traces by a draft of a judge, with the code that judges live traffic. No judge and no score is stored, and no event is sent. A draft of kind `llm` calls its model: the calls count in `judge_quota_calls`, are recorded as spans with their cost, and take up to 110 seconds. With `dry` true nothing is judged: the response says how many calls the preview would make and what they would cost, by an estimate of the tokens.',
    tag: TAG,
    permission: 'judges:write',
    audit: null,
    body: previewBody,
    example: {
      draft: {
        name: 'No apologies',
        kind: 'deterministic',
        rule: { type: 'not_contains', value: 'I am sorry', fields: ['response'] },
        threshold: { pass: 1 },
      },
      trace_ids: ['trc_0123456789abcdef'],
    },
    response: previewAnswer,
    errors: ['invalid_rubric', 'judge_quota_exceeded', 'upstream_unavailable'],
    handler: async ({ org_id, body, signal }) => ({ data: await previewJudge(deps, org_id, body, signal) }),
  });
}

function listJudgesRoute(deps: JudgesDeps): Route {
  return defineRoute({
    method: 'get',
    path: ROOT,
    operation_id: 'listJudges',
    summary: 'List judges',
    description: 'Returns the judges of the organization at their newest versions, newest judge first.',
    tag: TAG,
    permission: 'judges:read',
    query: listQuery,
    response: z.array(judgeItem),
    meta: cursorMeta,
    handler: ({ org_id, query }) => listJudges(deps, org_id, query),
  });
}

function getJudgeRoute(deps: JudgesDeps): Route {
  return defineRoute({
    method: 'get',
    path: ONE,
    operation_id: 'getJudge',
    summary: 'Get a judge',
    description: 'Returns the newest version of one judge.',
    tag: TAG,
    permission: 'judges:read',
    resource,
    params: judgeParams,
    response: judgeItem,
    errors: ['judge_not_found'],
    handler: ({ org_id, params }) => ({ data: itemOf(getJudge(deps, org_id, params.judge_id)) }),
  });
}

function changeJudgeRoute(deps: JudgesDeps): Route {
  return defineRoute({
    method: 'patch',
    path: ONE,
    operation_id: 'changeJudge',
    summary: 'Update a judge',
    description:
      'Creates the next version of the judge. Given fields replace the stored ones; `rule`, `threshold`, `scope` and `rubric` are replaced as a whole. Scores keep the version that gave them. A request that changes nothing creates no version.',
    tag: TAG,
    permission: 'judges:write',
    resource,
    audit: { action: 'judge.update', target: 'judge', param: 'judge_id' },
    params: judgeParams,
    body: patchBody,
    example: { threshold: { pass: 1, warn: 0.5 } },
    response: judgeItem,
    errors: ['judge_not_found', 'invalid_rubric', 'conflict'],
    handler: async ({ org_id, params, body, audit }) => {
      const { record, fields } = await changeJudge(deps, org_id, params.judge_id, body);
      if (fields.length > 0) audit.changes({ version: record.version, fields });
      return { data: itemOf(record) };
    },
  });
}

function deleteJudgeRoute(deps: JudgesDeps): Route {
  return defineRoute({
    method: 'delete',
    path: ONE,
    operation_id: 'deleteJudge',
    summary: 'Disable a judge',
    description:
      'Disables the judge. The judge and its scores stay readable; enable it again with `PATCH {"enabled": true}`.',
    tag: TAG,
    permission: 'judges:write',
    resource,
    audit: { action: 'judge.delete', target: 'judge', param: 'judge_id' },
    params: judgeParams,
    response: deletedJudge,
    errors: ['judge_not_found'],
    handler: async ({ org_id, params, audit }) => {
      const { judge_id } = params;
      const { record, fields } = await changeJudge(deps, org_id, judge_id, { enabled: false });
      if (fields.length > 0) audit.changes({ version: record.version, enabled: false });
      else audit.nothing();
      return { data: { judge_id, deleted: true as const } };
    },
  });
}
