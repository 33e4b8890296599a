// Calls a model through the gateway as its other clients do, and reads the answer as it arrives. Takes
// messages and who they belong to; reports each piece of text. The answer is bounded in characters,
// the call by its signal. Every call becomes a trace, whose id the gateway names at once.
import { errorOfThrown, RequestError } from '../../../client/error.ts';
import { personLogin } from '../../../client/login_wait.ts';
import { SseParser } from '../../../live/sse.ts';
import type { TemplateMessage, Values } from '../template.ts';

/** Characters of an answer that are kept; the call is ended beyond them. */
export const ANSWER_CHARS_MAX = 1_000_000;
/** The gateway takes as many characters of variables in a header. */
const VARIABLE_CHARS_MAX = 8192;

export interface ModelCall {
  org_id: string;
  model: string;
  messages: readonly TemplateMessage[];
  prompt_name: string;
  /** Null for a draft, which is no version of the registry. */
  prompt_version: string | null;
  variables: Values;
}

interface Reports {
  onTrace: (trace_id: string) => void;
  onText: (piece: string) => void;
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

/**
 * Resolves when the answer is complete.
 * @throws RequestError; the error of an aborted request
 */
export async function streamCall(call: ModelCall, { onTrace, onText }: Reports, signal: AbortSignal): Promise<void> {
  const answer = await ask(call, signal);
  const trace_id = answer.headers.get('x-service-trace-id');
  if (trace_id !== null) onTrace(trace_id);
  if (!answer.ok) throw await errorOf(answer);
  let chars = 0;
  const report = (piece: string): void => {
    chars += piece.length;
    if (piece !== '') onText(piece);
    if (chars > ANSWER_CHARS_MAX)
      throw new RequestError(answer.status, {
        code: 'too_long',
        detail: `The answer has more than ${ANSWER_CHARS_MAX} characters; its trace has all of it.`,
        request_id: answer.headers.get('x-request-id'),
      });
  };
  if (!(answer.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
    report(textIn(await answer.json(), 'message'));
    return;
  }
  await readStream(answer, report);
}

/** Sends the call; after a session that ended it is sent again with the next login. */
async function ask(call: ModelCall, signal: AbortSignal): Promise<Response> {
  for (;;) {
    let answer: Response;
    try {
      answer = await fetch('/v1/chat/completions', {
        method: 'POST',
        headers: headersOf(call),
        body: JSON.stringify({ model: call.model, messages: call.messages, stream: true }),
        signal,
      });
    } catch (thrown) {
      throw errorOfThrown(thrown);
    }
    // The 401 of a provider names a trace: the call was made.
    if (answer.status !== 401 || answer.headers.has('x-service-trace-id')) return answer;
    personLogin.end();
    await personLogin.wait(signal);
  }
}

function headersOf({ org_id, prompt_name, prompt_version, variables }: ModelCall): Record<string, string> {
  const sent = asciiJson(variables);
  return {
    'Content-Type': 'application/json',
    'X-Org-Id': org_id,
    'X-Service-Tags': 'playground',
    'X-Service-Prompt-Name': prompt_name,
    ...(prompt_version === null ? {} : { 'X-Service-Prompt-Version': prompt_version }),
    ...(sent.length <= VARIABLE_CHARS_MAX ? { 'X-Service-Prompt-Variables': sent } : {}),
  };
}

/** Returns JSON that a header can carry. */
const asciiJson = (values: Values): string =>
  JSON.stringify(values).replaceAll(
    /[^\u0020-\u007e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Returns the error of the gateway, or of the provider behind it. */
async function errorOf(answer: Response): Promise<RequestError> {
  const body: unknown = await answer.json().catch(() => null);
  const error = isFields(body) && isFields(body['error']) ? body['error'] : {};
  const retryAfter = Number(answer.headers.get('retry-after') ?? Number.NaN);
  return new RequestError(
    answer.status,
    {
      code: typeof error['code'] === 'string' ? error['code'] : `http_${answer.status}`,
      detail:
        typeof error['message'] === 'string' ? error['message'] : `The model answered with status ${answer.status}.`,
      request_id: answer.headers.get('x-request-id'),
    },
    Number.isFinite(retryAfter) ? retryAfter : null,
  );
}

async function readStream(answer: Response, report: (piece: string) => void): Promise<void> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  const parser = new SseParser();
  const take = (text: string): void => {
    for (const { data } of parser.push(text)) if (data !== '[DONE]') report(pieceOf(data));
  };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      take(value);
    }
    // A stream may end without an empty line after its last message.
    take('\n\n');
  } catch (thrown) {
    // The provider's stream goes on without a reader unless it is cancelled.
    await reader.cancel().catch(() => undefined);
    throw errorOfThrown(thrown);
  }
}

/** @throws RequestError for an error that the provider sends within its stream */
function pieceOf(data: string): string {
  let chunk: unknown;
  try {
    chunk = JSON.parse(data);
  } catch {
    return '';
  }
  if (isFields(chunk) && isFields(chunk['error'])) {
    const { message } = chunk['error'];
    const detail = typeof message === 'string' ? message : 'The model ended its answer with an error.';
    throw new RequestError(200, { code: 'upstream_error', detail, request_id: null });
  }
  return textIn(chunk, 'delta');
}

/** Returns the text of the first choice. */
function textIn(body: unknown, part: 'delta' | 'message'): string {
  const choices: unknown = isFields(body) ? body['choices'] : null;
  const [choice] = Array.isArray(choices) ? (choices as unknown[]) : [];
  const message = isFields(choice) ? choice[part] : null;
  return isFields(message) && typeof message['content'] === 'string' ? message['content'] : '';
}
