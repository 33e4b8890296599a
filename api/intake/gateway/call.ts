// Reads a call as its caller made it: operation, model and body. Takes the bytes of the body; returns
// what the gateway needs to call an upstream, budget the call and record it. The text of the body is
// kept as it was sent.
import { MalformedBody, parseJson } from '../../http/body.ts';
import { ApiError } from '../../http/errors.ts';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';
import { setMember } from './json_members.ts';
import type { CallLabels } from './labels.ts';
import { decoded, type Fields, isFields } from './values.ts';

/** chat stands for /chat/completions; messages is Anthropic's. */
export type Operation = 'chat' | 'responses' | 'embeddings' | 'messages';

export interface GatewayCall {
  operation: Operation;
  labels: CallLabels;
  request: Fields;
  /** The body as it was sent, decompressed. */
  raw: Buffer;
  /** Empty where the request names no model. */
  model: string;
  stream: boolean;
  /**
   * True if the gateway asks for the stream's usage in place of the caller and hides it from the
   * caller.
   */
  asksUsage: boolean;
}

/**
 * Reads a call. Rejects only what is not a JSON object: the upstream judges the fields.
 * @throws ApiError invalid_request
 */
export function readCall(operation: Operation, labels: CallLabels, raw: Buffer): GatewayCall {
  let request: unknown;
  try {
    request = parseJson(raw);
  } catch (error) {
    if (!(error instanceof MalformedBody)) throw error;
    throw new ApiError('invalid_request', `body: ${error.message}`, { cause: error });
  }
  if (!isFields(request)) throw new ApiError('invalid_request', 'body: must be a JSON object');
  const stream = request['stream'] === true && operation !== 'embeddings';
  const options = request['stream_options'];
  const asked = isFields(options) && options['include_usage'] === true;
  // The upstream rejects stream_options that are not an object.
  const canAsk = options == null || isFields(options);
  return {
    operation,
    labels,
    request,
    raw,
    model: typeof request['model'] === 'string' ? request['model'] : '',
    stream,
    asksUsage: operation === 'chat' && stream && !asked && canAsk,
  };
}

/**
 * Returns the body for a target: as it was sent, except for the model that the target replaces and
 * the usage that the gateway asks for.
 */
export function bodyFor({ raw, request, asksUsage }: GatewayCall, { model }: Pick<GatewayTarget, 'model'>): Buffer {
  if (!asksUsage && model === null) return raw;
  // latin1 keeps every byte; inserted text has to be UTF-8 bytes in latin1 too.
  let text = raw.toString('latin1');
  if (asksUsage) {
    const options = isFields(request['stream_options']) ? request['stream_options'] : {};
    text = setMember(text, 'stream_options', latin1(JSON.stringify({ ...options, include_usage: true })));
  }
  if (model !== null) text = setMember(text, 'model', latin1(JSON.stringify(model)));
  return Buffer.from(text, 'latin1');
}

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

/**
 * A model id as vendors write them (gpt-4o, ft:gpt-4o:org::id, meta-llama/Llama-3.1-8B,
 * @cf/meta/llama). No segment consists of dots only.
 */
const MODEL_ID = /^(?!\.+(?:\/|$))[\w.:@+~-]+(?:\/(?!\.+(?:\/|$))[\w.:@+~-]+)*$/;
const MODEL_ID_LENGTH_MAX = 256;

/**
 * Checks the model that a path names. The path goes upstream with the operator's key and must not
 * lead to another path of the upstream.
 * @throws ApiError invalid_request
 */
export function checkModelPath(path: string): void {
  const name = /^\/models\/([^?]*)/.exec(path)?.[1];
  if (name === undefined) return;
  const model = decoded(name);
  if (model === null || model.length > MODEL_ID_LENGTH_MAX || !MODEL_ID.test(model))
    throw new ApiError(
      'invalid_request',
      `model: must be 1 to ${MODEL_ID_LENGTH_MAX} letters, digits and . _ : @ + ~ -, in parts divided by / of which none is only dots`,
    );
}
