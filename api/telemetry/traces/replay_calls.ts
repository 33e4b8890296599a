// The calls of a replay, made. In: the calls in order. Out: an answer for each, or why there is none.
// Guarantees: a few run at a time; the first that fails ends the others; all of them together are bounded in time and in the bytes of
// their answers; whoever asked and went away ends them.
import {
  type ChatAnswer,
  type ChatRequest,
  type Upstream,
  UpstreamFailed,
} from '../../../ops/platform/llm/upstream.ts';
import { type ReplayCall, replayProblem } from '../../../pipeline/domain/traces/replay.ts';
import { ApiError } from '../../http/errors.ts';

export interface CallBounds {
  /** Calls that run at a time. */
  atOnce: number;
  /** Of one try, and of all calls together, milliseconds. */
  callMs: number;
  replayMs: number;
  /** Of all answers, as JSON. */
  answerBytes: number;
}

const BOUNDS: CallBounds = { atOnce: 4, callMs: 30_000, replayMs: 60_000, answerBytes: 16 * 1024 * 1024 };

/** @throws ApiError replay_failed where a call can never work, upstream_unavailable where it may later; the signal's reason */
export async function makeCalls(
  upstream: Upstream,
  calls: readonly ReplayCall[],
  signal: AbortSignal,
  bounds: CallBounds = BOUNDS,
): Promise<ChatAnswer[]> {
  const failed = new AbortController();
  const late = AbortSignal.timeout(bounds.replayMs);
  const ended = AbortSignal.any([signal, late, failed.signal]);
  const answers: ChatAnswer[] = [];
  const waiting = calls.entries();
  let bytes = 0;
  const work = async () => {
    for (const [i, call] of waiting) {
      ended.throwIfAborted();
      const answer = await upstream
        .chat(requestOf(call), { signal: ended, timeoutMs: bounds.callMs })
        .catch((error: unknown) => {
          throw failureOf(call, error);
        });
      bytes += Buffer.byteLength(JSON.stringify(answer.raw));
      if (bytes > bounds.answerBytes)
        throw new ApiError(
          'replay_failed',
          `The models answered with more than ${String(bounds.answerBytes)} bytes. Nothing was stored.`,
        );
      answers[i] = answer;
    }
  };
  const workers = Array.from({ length: Math.min(bounds.atOnce, calls.length) }, () =>
    // Only the first has something to say.
    work().catch((error: unknown) => {
      failed.abort(error);
    }),
  );
  await Promise.all(workers);
  signal.throwIfAborted();
  if (!failed.signal.aborted) return answers;
  if (!late.aborted) throw failed.signal.reason;
  throw new ApiError(
    'upstream_unavailable',
    `The models took longer than ${String(bounds.replayMs / 1000)} s to answer. Nothing was stored.`,
  );
}

/** What a call was made with came from outside; the upstream says what it does not take. */
const requestOf = ({ parameters, model, messages }: ReplayCall): ChatRequest =>
  ({ ...parameters, model, messages }) as unknown as ChatRequest;

/** A call that can never work as it was made is a replay that has diverged; one that may work later is not. */
function failureOf({ span, model }: ReplayCall, error: unknown): unknown {
  if (!(error instanceof UpstreamFailed)) return error;
  const { kind, status, message } = error;
  // Refused credentials are no fault of the trace.
  if (kind !== 'refused' || status === 401 || status === 403)
    return new ApiError('upstream_unavailable', `The model ${model} could not be called: ${message}.`, {
      cause: error,
    });
  const reason =
    status === 404 ? `its model ${model} is gone, ${message}` : `its model ${model} was asked in vain, ${message}`;
  return new ApiError('replay_failed', replayProblem(span.span_id, reason), { cause: error });
}
