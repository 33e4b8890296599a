// The operator's route that runs a scheduled job now, as of now or of another time.
import { z } from 'zod';
import { defineOperatorRoute, type Route } from '../../http/route.ts';
import { type JobsDeps, runJob } from './run.ts';

const TAG = 'Operator';

const jobParams = z.object({ name: z.string() });
/**
 * Bounds of `now`. Jobs look back up to a year, and count in days of the store's calendar, which
 * spans 1970 to 2149.
 */
const FIRST_NOW = '1971-01-01T00:00:00.000Z';
const LAST_NOW = '2099-12-31T23:59:59.999Z';
const runBody = z.object({
  now: z.iso
    .datetime({ offset: true })
    .refine((text) => Date.parse(text) >= Date.parse(FIRST_NOW) && Date.parse(text) <= Date.parse(LAST_NOW), {
      error: `must be a time from ${FIRST_NOW} to ${LAST_NOW}`,
    })
    .optional()
    .describe(`Time as of which the job runs, from ${FIRST_NOW} to ${LAST_NOW}. Defaults to the current time`),
});
const runAnswer = z
  .object({
    job: z.string(),
    now: z.iso.datetime(),
    started_at: z.iso.datetime(),
    ended_at: z.iso.datetime(),
    result: z.record(z.string(), z.unknown()).describe('Figures that the job reports'),
  })
  .meta({ id: 'JobRun' });

export function jobRoutes(deps: JobsDeps): Route[] {
  return [runJobRoute(deps)];
}

function runJobRoute(deps: JobsDeps): Route {
  return defineOperatorRoute({
    method: 'post',
    path: '/admin/jobs/:name/run',
    operation_id: 'runJob',
    summary: 'Run a scheduled job',
    description:
      'Runs the job on a worker and waits up to 110 seconds for its result. Returns 409 `conflict` while the job is already running, and 502 `upstream_unavailable` if no worker is available or the job takes longer than the wait.',
    tag: TAG,
    audit: { action: 'job.run', target: 'job', param: 'name' },
    params: jobParams,
    body: runBody,
    example: { now: '2026-06-01T00:00:00Z' },
    response: runAnswer,
    errors: ['job_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ params, body, audit, signal }) => {
      const { name } = params;
      const { now } = body;
      if (now !== undefined) audit.changes({ now });
      const run = await runJob(deps, { name, now: now === undefined ? null : Date.parse(now) }, signal);
      audit.changes({ result: run.result });
      return {
        data: {
          job: name,
          now: iso(run.now),
          started_at: iso(run.started_at),
          ended_at: iso(run.ended_at),
          result: run.result,
        },
      };
    },
  });
}

const iso = (ms: number): string => new Date(ms).toISOString();
