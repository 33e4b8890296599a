// Routes of judges: create, list, get, update, disable.
import { z } from 'zod';
import { cursorMeta } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { changeJudge, createJudge, getJudge, itemOf, type JudgesDeps, listJudges } from './judges.ts';
import { createBody, createdJudge, deletedJudge, judgeItem, judgeParams, listQuery, patchBody } from './schema.ts';

const TAG = 'Judges';
const ROOT = '/v1/judges';
const ONE = `${ROOT}/:judge_id`;
const resource = { type: 'judge', param: 'judge_id' } as const;

export function judgeRoutes(deps: JudgesDeps): Route[] {
  return [
    createJudgeRoute(deps),
    listJudgesRoute(deps),
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
