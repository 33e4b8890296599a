// Makes the calls of a replay: takes the calls in order, returns an answer for each or the reason
// of the failure. A few calls run concurrently; the first failure cancels the others, and so does a
// caller that disconnects. All calls together are bounded in time and in the bytes of their
// answers.
import {
  type ChatAnswer,
  type ChatRequest,
  type Upstream,
  UpstreamFailed,
} from '../../../ops/platform/llm/upstream.ts';
import { type ReplayCall, replayProblem } from '../../../pipeline/domain/traces/replay.ts';
import { ApiError } from '../../http/errors.ts';

export interface CallBounds {
  /** Maximum concurrent calls. */
  atOnce: number;
  /** Maximum time of one attempt, and of all calls together, milliseconds. */
  callMs: number;
  replayMs: number;
  /** Maximum bytes of all answers, as JSON. */
  answerBytes: number;
}

const BOUNDS: CallBounds = { atOnce: 4, callMs: 30_000, replayMs: 60_000, answerBytes: 16 * 1024 * 1024 };

/**
 * @throws ApiError replay_failed if a call can never succeed, upstream_unavailable if it may later;
 * the signal's reason
 */
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
          `The answers of the models exceed ${bounds.answerBytes} bytes. Nothing was stored.`,
        );
      answers[i] = answer;
    }
  };
  const workers = Array.from({ length: Math.min(bounds.atOnce, calls.length) }, () =>
    // Only the first failure is reported.
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
    `The models took longer than ${bounds.replayMs / 1000} s to answer. Nothing was stored.`,
  );
}

/**
 * The parameters of a call came from a client; the upstream rejects those that it does not accept.
 */
const requestOf = ({ parameters, model, messages }: ReplayCall): ChatRequest =>
  ({ ...parameters, model, messages }) as unknown as ChatRequest;

/**
 * Returns replay_failed for a call that can never succeed as it was made; a call that may succeed
 * later is an unavailable upstream.
 */
function failureOf({ span, model }: ReplayCall, error: unknown): unknown {
  if (!(error instanceof UpstreamFailed)) return error;
  const { kind, status, message } = error;
  // Rejected credentials are not the fault of the trace.
  if (kind !== 'refused' || status === 401 || status === 403)
    return new ApiError('upstream_unavailable', `The model ${model} could not be called: ${message}.`, {
      cause: error,
    });
  const reason =
    status === 404 ? `its model ${model} is gone, ${message}` : `its model ${model} rejected the call, ${message}`;
  return new ApiError('replay_failed', replayProblem(span.span_id, reason), { cause: error });
}
