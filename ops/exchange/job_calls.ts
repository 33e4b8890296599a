// Runs a job on demand: a process calls a worker that runs jobs, in plain NATS messages. The worker
// answers at once whether it runs the job, then sends heartbeats until the job is over and reports
// its result, so a caller learns within seconds that its worker died. Nothing is stored; a call
// that no worker takes is not run later.
import { createInbox, type Msg, type NatsConnection, NoRespondersError, RequestError } from '@nats-io/transport-node';
import type { z } from 'zod';
import {
  JOB_CALL_GROUP,
  JOB_CALL_SUBJECT,
  jobCallShape,
  type JobEnd,
  jobProgressShape,
  jobTakenShape,
} from '../../schemas/signals/job_calls.ts';

/** Maximum time for a worker to take or refuse a call. */
const TAKEN_MS_MAX = 5000;
const BEAT_MS = 1000;
/** A worker that was silent for this long is dead or cut off. */
const SILENT_MS_MAX = 8000;

/**
 * Result of a call. `unheard`: no worker took it, the worker that did fell silent, or the job takes
 * longer than the caller waits.
 */
export type JobCallResult = JobEnd | { state: 'unknown' } | { state: 'running' } | { state: 'unheard'; detail: string };

export interface JobCall {
  name: string;
  /**
   * Instant as of which to run, in milliseconds since the epoch; null: the time at which the run
   * starts.
   */
  now: number | null;
  /** JSON arguments, for a job that takes any. */
  args?: unknown;
}

/** A worker's answer to a call: a run that has begun, or the reason for not running it. */
export type TakenCall = { end: Promise<JobEnd> } | 'unknown' | 'running' | 'unavailable';

/**
 * Has a worker run a job and waits for its end.
 * @param options.waitMs maximum wait for the end; the run itself continues after it
 */
export async function callJob(
  nc: NatsConnection,
  call: JobCall,
  options: { waitMs: number; signal?: AbortSignal },
): Promise<JobCallResult> {
  const end = Promise.withResolvers<JobCallResult>();
  const unheard = (detail: string): void => {
    end.resolve({ state: 'unheard', detail });
  };
  const silence = (): void => {
    unheard('The worker that ran the job stopped responding.');
  };
  let silent: NodeJS.Timeout | undefined;
  const late = setTimeout(unheard, options.waitMs, 'The job takes longer than a request waits. It continues to run.');
  const left = (): void => {
    unheard('The caller closed the connection.');
  };
  options.signal?.addEventListener('abort', left);
  const inbox = createInbox();
  const subscription = nc.subscribe(inbox, {
    callback: (error, message) => {
      const progress = error === null ? parsed(jobProgressShape, message) : null;
      if (progress === null) return;
      clearTimeout(silent);
      if (progress.state === 'running') silent = setTimeout(silence, SILENT_MS_MAX);
      else end.resolve(progress);
    },
  });
  try {
    const reply = await nc.request(JOB_CALL_SUBJECT, JSON.stringify({ ...call, inbox }), { timeout: TAKEN_MS_MAX });
    const taken = parsed(jobTakenShape, reply)?.taken ?? 'unavailable';
    if (taken === 'unavailable') return { state: 'unheard', detail: 'The worker cannot run the job now.' };
    if (taken !== 'yes') return { state: taken };
    silent ??= setTimeout(silence, SILENT_MS_MAX);
    return await end.promise;
  } catch (error) {
    return {
      state: 'unheard',
      detail: isUnanswered(error)
        ? 'No pipeline worker is available to run the job.'
        : 'The workers cannot be reached.',
    };
  } finally {
    subscription.unsubscribe();
    clearTimeout(late);
    clearTimeout(silent);
    options.signal?.removeEventListener('abort', left);
  }
}

function isUnanswered(error: unknown): boolean {
  return error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders());
}

/**
 * Takes job calls; each call goes to one of the workers that do.
 * @param take decides on a call. The caller waits for it, so it must settle soon.
 * @returns a function that stops taking calls
 */
export function answerJobCalls(nc: NatsConnection, take: (call: JobCall) => Promise<TakenCall>): () => void {
  const answer = async (message: Msg): Promise<void> => {
    const call = parsed(jobCallShape, message);
    if (call === null) return;
    const taken = await take({ name: call.name, now: call.now, args: call.args }).catch(() => 'unavailable' as const);
    const say = (subject: string, what: unknown): void => {
      if (!nc.isClosed()) nc.publish(subject, JSON.stringify(what));
    };
    say(message.reply ?? '', { taken: typeof taken === 'string' ? taken : 'yes' });
    if (typeof taken === 'string') return;
    const beats = setInterval(say, BEAT_MS, call.inbox, { state: 'running' });
    const end = await taken.end;
    clearInterval(beats);
    say(call.inbox, end);
  };
  const subscription = nc.subscribe(JOB_CALL_SUBJECT, {
    queue: JOB_CALL_GROUP,
    callback: (error, message) => {
      if (error === null && message.reply !== undefined && message.reply !== '') void answer(message);
    },
  });
  return () => {
    subscription.unsubscribe();
  };
}

function parsed<T>(shape: z.ZodType<T>, message: Msg): T | null {
  try {
    return shape.parse(message.json());
  } catch {
    return null;
  }
}
