// The operator's route that reprices the calls of an organization in a time range by the current
// prices.
import { z } from 'zod';
import { REPRICE, type RepriceArgs } from '../../../schemas/records/repricing.ts';
import { ApiError } from '../../http/errors.ts';
import { defineOperatorRoute, type Route } from '../../http/route.ts';
import { type JobsDeps, runJob } from './run.ts';

const TAG = 'Operator';

const DAY_MS = 86_400_000;
const RANGE_DAYS_MAX = 400;
const MODEL_LENGTH_MAX = 1024;

const instant = z.iso.datetime({ offset: true });
const repriceBody = z
  .object({
    org_id: z.string().min(1),
    since: instant.describe('Calls that began at or after this time'),
    until: instant.describe(`Calls that began before this time, at most ${RANGE_DAYS_MAX} days after since`),
    model: z
      .string()
      .min(1)
      .max(MODEL_LENGTH_MAX)
      .optional()
      .describe('Only calls of this model, as requests name it, ignoring case'),
  })
  .superRefine(({ since, until }, ctx) => {
    const days = (Date.parse(until) - Date.parse(since)) / DAY_MS;
    if (days <= 0) ctx.addIssue({ code: 'custom', path: ['until'], message: 'must be a time after since' });
    if (days > RANGE_DAYS_MAX)
      ctx.addIssue({
        code: 'custom',
        path: ['until'],
        message: `must be a time at most ${RANGE_DAYS_MAX} days after since`,
      });
    if (Date.parse(since) < 0)
      ctx.addIssue({ code: 'custom', path: ['since'], message: 'must be a time from 1970 on' });
  });

const repriceAnswer = z
  .object({
    org_id: z.string(),
    since: z.iso.datetime(),
    until: z.iso.datetime(),
    spans: z.int().describe('Priced calls that were checked'),
    repriced: z.int().describe('Calls whose cost or price was corrected'),
    unknown: z.int().describe('Calls that stay as they are, since sampling did not keep what is needed to price them'),
    delta_usd: z.number().describe('Change of the total cost, in USD'),
    finished: z.int().describe('Calls of an earlier interrupted run, which this run completed first'),
  })
  .meta({ id: 'Repricing' });

const runResult = z.object({
  spans: z.int(),
  repriced: z.int(),
  unknown: z.int(),
  delta_usd: z.number(),
  finished: z.int(),
});

export function repriceRoutes(deps: JobsDeps & { hasOrg: (org_id: string) => boolean }): Route[] {
  return [repriceRoute(deps)];
}

function repriceRoute(deps: JobsDeps & { hasOrg: (org_id: string) => boolean }): Route {
  return defineOperatorRoute({
    method: 'post',
    path: '/admin/reprice',
    operation_id: 'reprice',
    summary: 'Reprice stored calls',
    description:
      'Recomputes the cost of the calls of one organization from the current prices, each call by the price of its own day. Costs that senders gave stay. Afterwards spans, traces, budgets, daily costs and analyst views agree; a budget is corrected in the period in which the calls arrived.\n\nRepricing is expensive: a worker reads the whole range and rewrites columns. Returns 409 `conflict` while a repricing is already running. Returns 502 `upstream_unavailable` if the repricing takes longer than 110 seconds; it then goes on, and repeating the request returns its result.',
    tag: TAG,
    audit: { action: 'prices.reprice', target: 'prices' },
    body: repriceBody,
    example: { org_id: 'org_acme', since: '2026-06-01T00:00:00Z', until: '2026-07-01T00:00:00Z', model: 'gpt-4o' },
    response: repriceAnswer,
    errors: ['org_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ body, audit, signal }) => {
      const { org_id, model } = body;
      const [since, until] = [Date.parse(body.since), Date.parse(body.until)];
      if (!deps.hasOrg(org_id)) throw new ApiError('org_not_found', `There is no organization ${org_id}.`);
      const args: RepriceArgs = { org_id, since, until, model: model ?? null };
      const range = { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
      audit.org(org_id);
      audit.target(org_id);
      audit.changes({ ...range, ...(model === undefined ? {} : { model }) });
      const run = await runJob(deps, { name: REPRICE, now: null, args }, signal);
      const result = runResult.parse(run.result);
      audit.changes({ result });
      return { data: { org_id, ...range, ...result } };
    },
  });
}
