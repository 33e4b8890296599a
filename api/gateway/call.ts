// One call as its caller made it: which operation, which model, whose trace, and what of its headers goes on to the upstream.
// In: headers and body. Out: what is needed to ask an upstream, budget the call and record it. The body's text is kept as it came.
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { rawCredentialOf } from '../http/auth.ts';
import { MalformedBody, parseJson } from '../http/body.ts';
import { ApiError } from '../http/errors.ts';
import type { GatewayTarget } from '../../ops/llm/routes.ts';
import { setMember } from './json_members.ts';
import { type Fields, isFields } from './values.ts';

/** chat: /chat/completions. */
export type Operation = 'chat' | 'responses' | 'embeddings';

/** Whose call it is, from the X-Service-* headers. */
export interface CallLabels {
  trace_id: string;
  span_id: string;
  parent_span_id: string | null;
  agent_id: string | null;
  session_id: string | null;
  user_id: string | null;
  tags: readonly string[];
}

export interface GatewayCall {
  operation: Operation;
  labels: CallLabels;
  request: Fields;
  /** The body as it came, decompressed. */
  raw: Buffer;
  /** Empty where the request names none. */
  model: string;
  stream: boolean;
  /** Whether the stream's usage is asked for in the caller's place, and kept from it. */
  asksUsage: boolean;
}

const ID = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/;
const LABEL_LENGTH_MAX = 512;
const TAGS_MAX = 64;
const TAG_LENGTH_MAX = 256;

/** Reads the labels; ids that are not given are made up. @throws ApiError invalid_request */
export function labelsOf(headers: IncomingHttpHeaders): CallLabels {
  const random = randomUUID().replaceAll('-', '');
  return {
    trace_id: idIn(headers, 'X-Service-Trace-Id') ?? `trc_${random.slice(0, 16)}`,
    span_id: `spn_${random.slice(16)}`,
    parent_span_id: idIn(headers, 'X-Service-Parent-Span-Id'),
    agent_id: labelIn(headers, 'X-Service-Agent-Id'),
    session_id: labelIn(headers, 'X-Service-Session-Id'),
    user_id: labelIn(headers, 'X-Service-User-Id'),
    tags: tagsIn(headers),
  };
}

function textIn(headers: IncomingHttpHeaders, name: string): string | null {
  const given = headers[name.toLowerCase()];
  const text = (Array.isArray(given) ? given.join(',') : (given ?? '')).trim();
  // Header bytes beyond ASCII come as latin1; they are meant as UTF-8.
  return text === '' ? null : Buffer.from(text, 'latin1').toString('utf8');
}

function idIn(headers: IncomingHttpHeaders, name: string): string | null {
  const text = textIn(headers, name);
  if (text !== null && !ID.test(text))
    throw new ApiError('invalid_request', `${name}: takes 1 to 128 of letters, digits, _ . : -, other than . and ..`);
  return text;
}

function labelIn(headers: IncomingHttpHeaders, name: string): string | null {
  const text = textIn(headers, name);
  if (text !== null && text.length > LABEL_LENGTH_MAX)
    throw new ApiError('invalid_request', `${name}: takes at most ${String(LABEL_LENGTH_MAX)} characters`);
  return text;
}

function tagsIn(headers: IncomingHttpHeaders): string[] {
  const name = 'X-Service-Tags';
  const tags = (textIn(headers, name) ?? '')
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  if (tags.length > TAGS_MAX || tags.some((tag) => tag.length > TAG_LENGTH_MAX))
    throw new ApiError('invalid_request', `${name}: takes at most ${String(TAGS_MAX)} tags of ${String(TAG_LENGTH_MAX)} characters`);
  return tags;
}

/** Reads a call. What the upstream makes of the fields is its own to say: only what is no JSON object is refused. @throws ApiError invalid_request */
export function readCall(operation: Operation, labels: CallLabels, raw: Buffer): GatewayCall {
  let request: unknown;
  try {
    request = parseJson(raw);
  } catch (error) {
    if (!(error instanceof MalformedBody)) throw error;
    throw new ApiError('invalid_request', `body: ${error.message}`, { cause: error });
  }
  if (!isFields(request)) throw new ApiError('invalid_request', 'body: takes a JSON object');
  const stream = request['stream'] === true && operation !== 'embeddings';
  const options = request['stream_options'];
  const asked = isFields(options) && options['include_usage'] === true;
  // What is no object there is the upstream's to refuse.
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

/** The body for a target: as it came but for the model that the target has in its place, and the usage that is asked for. */
export function bodyFor({ raw, request, asksUsage }: GatewayCall, { model }: Pick<GatewayTarget, 'model'>): Buffer {
  if (!asksUsage && model === null) return raw;
  // latin1 keeps every byte; what is set has to be bytes of UTF-8 too.
  let text = raw.toString('latin1');
  if (asksUsage) {
    const options = isFields(request['stream_options']) ? request['stream_options'] : {};
    text = setMember(text, 'stream_options', latin1(JSON.stringify({ ...options, include_usage: true })));
  }
  if (model !== null) text = setMember(text, 'model', latin1(JSON.stringify(model)));
  return Buffer.from(text, 'latin1');
}

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

/** Headers that end here: they are about this connection or this service, or made anew. */
const NOT_PASSED = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
  'content-length',
  'content-encoding',
  // The record is read from the answer on its way, so it must not be compressed.
  'accept-encoding',
  'authorization',
  'cookie',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'x-org-api-key',
  'x-org-id',
  'x-request-id',
]);

/** Headers for a target: the caller's own but those of this service and whatever holds the caller's credential. */
export function headersFor(headers: IncomingHttpHeaders, target: Pick<GatewayTarget, 'api_key'>): Record<string, string | string[]> {
  const credential = rawCredentialOf(headers) ?? '';
  const connection = new Set((headers.connection ?? '').toLowerCase().split(/\s*,\s*/));
  const passed: Record<string, string | string[]> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || NOT_PASSED.has(name) || name.startsWith('x-service-') || connection.has(name)) continue;
    if (credential !== '' && String(value).includes(credential)) continue;
    passed[name] = value;
  }
  passed['accept-encoding'] = 'identity';
  if (target.api_key !== null) passed['authorization'] = `Bearer ${target.api_key}`;
  return passed;
}

/** Headers of an upstream's answer that end here, besides those above. */
const NOT_ANSWERED = new Set(['set-cookie', 'alt-svc', 'strict-transport-security', 'date']);
const SAME_BOTH_WAYS = new Set(['content-encoding', 'content-length']);

/** Headers of an upstream's answer that the caller gets, names and values in turn. @param rewritten its body is not passed on whole */
export function answerHeaders(rawHeaders: readonly string[], rewritten: boolean): string[] {
  const passed: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lower = name.toLowerCase();
    if (rewritten && lower === 'content-length') continue;
    if ((NOT_PASSED.has(lower) && !SAME_BOTH_WAYS.has(lower)) || NOT_ANSWERED.has(lower)) continue;
    if (lower.startsWith('x-service-') || lower.startsWith('ratelimit-')) continue;
    passed.push(name, rawHeaders[i + 1] ?? '');
  }
  return passed;
}
