// Has a worker judge stored traces by a draft of a judge, in plain NATS messages. The worker sends
// a sign of life at once and every second, so a caller learns within seconds that its worker died;
// the worker stops when its caller no longer waits. Nothing is stored.
import { createInbox, type Msg, type NatsConnection } from '@nats-io/transport-node';
import {
  JUDGE_PREVIEW_GROUP,
  JUDGE_PREVIEW_SUBJECT,
  type PreviewCall,
  previewCallShape,
  type PreviewEnd,
  previewProgressShape,
  previewStopSubject,
} from '../../schemas/signals/judge_previews.ts';

const BEAT_MS = 1000;
/** A worker that was silent for this long is dead or cut off. */
const SILENT_MS_MAX = 5000;
/** Status of NATS for a request that nobody receives. */
const NO_RESPONDERS = 503;

/** unheard: no worker took the call, or the worker fell silent. late: the call took too long. */
export type PreviewCallResult = PreviewEnd | { state: 'unheard' | 'late' };

/**
 * Has a worker carry out a preview and waits for its end.
 * @param options.waitMs maximum wait for the end, after which the worker stops too
 */
export async function callPreview(
  nc: NatsConnection,
  call: PreviewCall,
  options: { waitMs: number; signal: AbortSignal },
): Promise<PreviewCallResult> {
  options.signal.throwIfAborted();
  const end = Promise.withResolvers<PreviewCallResult>();
  const inbox = createInbox();
  const settle = (state: 'unheard' | 'late'): void => {
    end.resolve({ state });
  };
  let silent = setTimeout(settle, SILENT_MS_MAX, 'unheard');
  const late = setTimeout(settle, options.waitMs, 'late');
  const left = (): void => {
    end.reject(options.signal.reason as Error);
  };
  options.signal.addEventListener('abort', left, { once: true });
  const subscription = nc.subscribe(inbox, {
    callback: (error, message) => {
      if (error !== null) return;
      if (message.headers?.code === NO_RESPONDERS) {
        settle('unheard');
        return;
      }
      const progress = parsed(previewProgressShape, message);
      if (progress === null) return;
      clearTimeout(silent);
      if (progress.state === 'running') silent = setTimeout(settle, SILENT_MS_MAX, 'unheard');
      else end.resolve(progress);
    },
  });
  let ended = false;
  try {
    nc.publish(JUDGE_PREVIEW_SUBJECT, JSON.stringify(call), { reply: inbox });
    const result = await end.promise;
    ended = result.state !== 'late' && result.state !== 'unheard';
    return result;
  } finally {
    if (!ended && !nc.isClosed()) nc.publish(previewStopSubject(inbox));
    subscription.unsubscribe();
    clearTimeout(late);
    clearTimeout(silent);
    options.signal.removeEventListener('abort', left);
  }
}

/**
 * Takes calls; each goes to one of the workers that do.
 * @param carryOut must settle soon once its signal aborts
 * @returns a function that stops taking calls and ends those under way
 */
export function answerPreviewCalls(
  nc: NatsConnection,
  carryOut: (call: PreviewCall, signal: AbortSignal) => Promise<PreviewEnd>,
): () => void {
  const stopping = new AbortController();
  const answer = async (message: Msg, reply: string): Promise<void> => {
    const call = parsed(previewCallShape, message);
    if (call === null) return;
    const say = (what: unknown): void => {
      if (!nc.isClosed()) nc.publish(reply, JSON.stringify(what));
    };
    const left = new AbortController();
    const stop = nc.subscribe(previewStopSubject(reply), {
      max: 1,
      callback: () => {
        left.abort(new Error('the caller no longer waits'));
      },
    });
    say({ state: 'running' });
    const beats = setInterval(say, BEAT_MS, { state: 'running' });
    try {
      say(await carryOut(call, AbortSignal.any([left.signal, stopping.signal])));
    } catch {
      say({ state: 'failed' });
    } finally {
      clearInterval(beats);
      stop.unsubscribe();
    }
  };
  const subscription = nc.subscribe(JUDGE_PREVIEW_SUBJECT, {
    queue: JUDGE_PREVIEW_GROUP,
    callback: (error, message) => {
      if (error === null && message.reply !== undefined && message.reply !== '') void answer(message, message.reply);
    },
  });
  return () => {
    subscription.unsubscribe();
    stopping.abort(new Error('the worker is ending'));
  };
}

function parsed<T>(shape: { parse: (value: unknown) => T }, message: Msg): T | null {
  try {
    return shape.parse(message.json());
  } catch {
    return null;
  }
}
