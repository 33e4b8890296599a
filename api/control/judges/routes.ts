// Routes of judges: make, list, show, change, disable.
import { z } from 'zod';
import { defineRoute, type Route } from '../../http/route.ts';
import { changeJudge, createJudge, getJudge, itemOf, type JudgesDeps, listJudges } from './judges.ts';
import {
  createBody,
  createdJudge,
  deletedJudge,
  judgeItem,
  judgeParams,
  listMeta,
  listQuery,
  patchBody,
} from './schema.ts';

const TAG = 'Judges';
const ROOT = '/v1/judges';
const ONE = `${ROOT}/:judge_id`;
const resource = { type: 'judge', param: 'judge_id' } as const;

export function judgeRoutes(deps: JudgesDeps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: ROOT,
      operation_id: 'createJudge',
      summary: 'Make a judge',
      description:
        'A deterministic judge holds a rule against each complete trace in its scope and scores 1 or 0: in judge_scores of trace.completed, and in ' +
        'judge_scores for good. An llm judge asks a model by its rubric, after the trace is complete and at most once in cooldown_seconds for each ' +
        'agent. A score of live traffic under threshold.warn (under threshold.pass where no warn is set) fires judge.threshold_breach; evals fire none. An organization has at most 2,000 judges, 200 of them enabled, with 16 MiB in all and 256 KiB each; beyond that the answer is 409.',
      tag: TAG,
      permission: 'judges:write',
      status: 201,
      audit: { action: 'judge.create', target: 'judge' },
      body: createBody,
      example: {
        name: 'No apologies',
        kind: 'deterministic',
        rule: { type: 'regex_absent', pattern: '(?i)as an ai language model', fields: ['response'] },
        threshold: { pass: 1 },
        scope: { source_format: ['chatcompletion'] },
      },
      response: createdJudge,
      errors: ['invalid_rubric', 'conflict'],
      handler: async (ctx) => {
        const record = await createJudge(deps, ctx.org_id, ctx.body);
        const { judge_id, version, created_at, name, kind, enabled } = record;
        ctx.audit.target(judge_id);
        ctx.audit.changes({ name, kind, enabled, version });
        return { data: { judge_id, version, created_at } };
      },
    }),
    defineRoute({
      method: 'get',
      path: ROOT,
      operation_id: 'listJudges',
      summary: 'Judges of the org, newest first, each at its newest version',
      tag: TAG,
      permission: 'judges:read',
      query: listQuery,
      response: z.array(judgeItem),
      meta: listMeta,
      handler: (ctx) => listJudges(deps, ctx.org_id, ctx.query),
    }),
    defineRoute({
      method: 'get',
      path: ONE,
      operation_id: 'getJudge',
      summary: 'One judge, at its newest version',
      tag: TAG,
      permission: 'judges:read',
      resource,
      params: judgeParams,
      response: judgeItem,
      errors: ['judge_not_found'],
      handler: (ctx) => ({ data: itemOf(getJudge(deps, ctx.org_id, ctx.params.judge_id)) }),
    }),
    defineRoute({
      method: 'patch',
      path: ONE,
      operation_id: 'changeJudge',
      summary: 'Make the next version of a judge',
      description:
        'What is given replaces what was, rule, threshold, scope and rubric as a whole. Scores keep the version that gave them. What changes nothing makes no version.',
      tag: TAG,
      permission: 'judges:write',
      resource,
      audit: { action: 'judge.update', target: 'judge', param: 'judge_id' },
      params: judgeParams,
      body: patchBody,
      example: { threshold: { pass: 1, warn: 0.5 } },
      response: judgeItem,
      errors: ['judge_not_found', 'invalid_rubric', 'conflict'],
      handler: async (ctx) => {
        const { record, fields } = await changeJudge(deps, ctx.org_id, ctx.params.judge_id, ctx.body);
        if (fields.length > 0) ctx.audit.changes({ version: record.version, fields });
        return { data: itemOf(record) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: ONE,
      operation_id: 'deleteJudge',
      summary: 'Disable a judge',
      description:
        'It judges no more; it and its scores can still be read, and PATCH with enabled true brings it back.',
      tag: TAG,
      permission: 'judges:write',
      resource,
      audit: { action: 'judge.delete', target: 'judge', param: 'judge_id' },
      params: judgeParams,
      response: deletedJudge,
      errors: ['judge_not_found'],
      handler: async (ctx) => {
        const { judge_id } = ctx.params;
        const { record, fields } = await changeJudge(deps, ctx.org_id, judge_id, { enabled: false });
        if (fields.length > 0) ctx.audit.changes({ version: record.version, enabled: false });
        else ctx.audit.nothing();
        return { data: { judge_id, deleted: true as const } };
      },
    }),
  ];
}
