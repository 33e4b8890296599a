// The operator's way to run a scheduled job now, as of now or of another time.
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import { callJob } from '../../ops/job_calls.ts';
import { ApiError } from '../http/errors.ts';
import { defineOperatorRoute, type Route } from '../http/route.ts';

/** Longest wait for the end of a run; less than proxies and clients commonly wait. */
const WAIT_MS_MAX = 110_000;

export interface JobsDeps {
  nc: NatsConnection;
  connected: () => boolean;
}

const jobParams = z.object({ name: z.string() });
const runBody = z.object({ now: z.iso.datetime({ offset: true }).optional().describe('The instant as of which the job works') });
const runAnswer = z
  .object({
    job: z.string(),
    now: z.iso.datetime(),
    started_at: z.iso.datetime(),
    ended_at: z.iso.datetime(),
    result: z.record(z.string(), z.unknown()).describe('What the run did, in numbers'),
  })
  .meta({ id: 'JobRun' });

export function jobRoutes(deps: JobsDeps): Route[] {
  return [
    defineOperatorRoute({
      method: 'post',
      path: '/admin/jobs/:name/run',
      operation_id: 'runJob',
      summary: 'Run a scheduled job and wait for its end',
      description: 'A worker runs it. 409 conflict while it runs already; 502 when no worker can, or the job takes longer than the wait.',
      tag: 'Operator',
      audit: { action: 'job.run', target: 'job', param: 'name' },
      params: jobParams,
      body: runBody,
      example: { now: '2026-06-01T00:00:00Z' },
      response: runAnswer,
      errors: ['job_not_found', 'conflict', 'upstream_unavailable'],
      handler: async (ctx) => {
        const { name } = ctx.params;
        const { now } = ctx.body;
        if (now !== undefined) ctx.audit.changes({ now });
        const run = await runJob(deps, name, now === undefined ? null : Date.parse(now), ctx.signal);
        ctx.audit.changes({ result: run.result });
        return { data: { job: name, now: iso(run.now), started_at: iso(run.started_at), ended_at: iso(run.ended_at), result: run.result } };
      },
    }),
  ];
}

const iso = (ms: number): string => new Date(ms).toISOString();

async function runJob({ nc, connected }: JobsDeps, name: string, now: number | null, signal: AbortSignal) {
  if (!connected()) throw new ApiError('upstream_unavailable', 'The workers cannot be reached. Try again.');
  const end = await callJob(nc, { name, now }, { waitMs: WAIT_MS_MAX, signal });
  switch (end.state) {
    case 'ended':
      return end;
    case 'unknown':
      throw new ApiError('job_not_found', `There is no job ${name}.`);
    case 'running':
      throw new ApiError('conflict', `The job ${name} runs already.`);
    case 'unheard':
      throw new ApiError('upstream_unavailable', end.detail);
    case 'failed':
      throw new ApiError(end.unavailable ? 'upstream_unavailable' : 'internal_error', `The job failed: ${end.detail}.`);
  }
}
