// Runs a scheduled job on a worker on behalf of a request.
import type { NatsConnection } from '@nats-io/transport-node';
import { callJob, type JobCall } from '../../../ops/exchange/job_calls.ts';
import { ApiError } from '../../http/errors.ts';

/** Maximum wait for the end of a run, shorter than the usual timeouts of proxies and clients. */
const WAIT_MS_MAX = 110_000;

export interface JobsDeps {
  nc: NatsConnection;
  connected: () => boolean;
}

/**
 * Runs a job on a worker and resolves with its result.
 *
 * @throws ApiError job_not_found, conflict while the job is running, upstream_unavailable,
 * internal_error
 */
export async function runJob({ nc, connected }: JobsDeps, call: JobCall, signal: AbortSignal) {
  const { name } = call;
  if (!connected()) throw new ApiError('upstream_unavailable', 'No pipeline worker can be reached. Try again.');
  const end = await callJob(nc, call, { waitMs: WAIT_MS_MAX, signal });
  switch (end.state) {
    case 'ended':
      return end;
    case 'unknown':
      throw new ApiError('job_not_found', `There is no job ${name}.`);
    case 'running':
      throw new ApiError('conflict', `The job ${name} is already running.`);
    case 'unheard':
      throw new ApiError('upstream_unavailable', end.detail);
    case 'failed':
      throw new ApiError(end.unavailable ? 'upstream_unavailable' : 'internal_error', `The job failed: ${end.detail}.`);
  }
}
