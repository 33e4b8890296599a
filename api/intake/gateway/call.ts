// One call as its caller made it: which operation, which model, whose trace, and what of its headers goes on to the upstream.
// In: headers and body. Out: what is needed to ask an upstream, budget the call and record it. The body's text is kept as it came.
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { rawCredentialOf } from '../../http/auth.ts';
import { MalformedBody, parseJson } from '../../http/body.ts';
import { ApiError } from '../../http/errors.ts';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';
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
    throw new ApiError(
      'invalid_request',
      `${name}: takes at most ${String(TAGS_MAX)} tags of ${String(TAG_LENGTH_MAX)} characters`,
    );
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

/** The id of a model as vendors write them (gpt-4o, ft:gpt-4o:org::id, meta-llama/Llama-3.1-8B, @cf/meta/llama): no segment of dots only. */
const MODEL_ID = /^(?!\.+(?:\/|$))[\w.:@+~-]+(?:\/(?!\.+(?:\/|$))[\w.:@+~-]+)*$/;
const MODEL_ID_LENGTH_MAX = 256;

/**
 * Checks the model that a path under an upstream's base URL names: it goes upstream with the operator's key and must not lead
 * to another of the upstream's paths.
 * @throws ApiError invalid_request
 */
export function checkModelPath(path: string): void {
  const name = /^\/models\/([^?]*)/.exec(path)?.[1];
  if (name === undefined) return;
  const model = decoded(name);
  if (model === null || model.length > MODEL_ID_LENGTH_MAX || !MODEL_ID.test(model))
    throw new ApiError(
      'invalid_request',
      `model: takes 1 to ${String(MODEL_ID_LENGTH_MAX)} letters, digits and . _ : @ + ~ -, in parts divided by / of which none is only dots`,
    );
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/**
 * Checks that the query, which goes upstream as it is, does not hold the caller's credential.
 * @throws ApiError invalid_request
 */
export function checkQuery(path: string, headers: IncomingHttpHeaders): void {
  const at = path.indexOf('?');
  if (at < 0) return;
  const query = path.slice(at);
  const text = decoded(query) ?? query;
  if (credentialsOf(headers).some((credential) => query.includes(credential) || text.includes(credential)))
    throw new ApiError('invalid_request', 'query: takes no credential; send the key in Authorization or X-Org-Api-Key');
}

/** Credentials shorter than this are not looked for in other headers: an ordinary word would match. */
const CREDENTIAL_LENGTH_MIN = 8;

/** Returns every credential that a caller sends, also those that the service does not use because another header wins. */
function credentialsOf(headers: IncomingHttpHeaders): string[] {
  const given = [
    rawCredentialOf(headers),
    headers['x-org-api-key'],
    headers.authorization?.split(' ').at(-1),
    headers.cookie,
  ];
  return given.flatMap((value) => (typeof value === 'string' && value.length >= CREDENTIAL_LENGTH_MIN ? [value] : []));
}

/**
 * Headers of a caller that an upstream gets, besides those that begin with one of REQUEST_PREFIXES. A list of what passes, not of
 * what ends here: a header that nobody thought of may hold a credential or a cookie, or may choose an account under the operator's key.
 */
const REQUEST_HEADERS = new Set([
  'accept',
  'content-type',
  'user-agent',
  'x-client-request-id',
  // How applications name themselves to OpenRouter and its like.
  'http-referer',
  'x-title',
  'traceparent',
  'tracestate',
]);
const REQUEST_PREFIXES = ['openai-', 'x-stainless-'];

/** Headers of an upstream's answer that the caller gets, besides those that begin with one of ANSWER_PREFIXES. */
const ANSWER_HEADERS = new Set([
  'cache-control',
  'content-encoding',
  'content-language',
  'content-length',
  'content-type',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
]);
const ANSWER_PREFIXES = ['openai-', 'x-ratelimit-'];

const passes = (name: string, names: ReadonlySet<string>, prefixes: readonly string[]): boolean =>
  names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));

/** Returns the names that a Connection header takes for one hop, in lower case. */
const hopNames = (connection: string | undefined): ReadonlySet<string> =>
  new Set(
    (connection ?? '')
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );

/**
 * Returns the headers for a target: those of the caller that are on the list, without any whose value holds the caller's credential,
 * and the target's own key.
 */
export function headersFor(
  headers: IncomingHttpHeaders,
  target: Pick<GatewayTarget, 'api_key'>,
): Record<string, string | string[]> {
  const credentials = credentialsOf(headers);
  const hop = hopNames(headers.connection);
  const passed: Record<string, string | string[]> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || hop.has(name) || !passes(name, REQUEST_HEADERS, REQUEST_PREFIXES)) continue;
    if (credentials.some((credential) => String(value).includes(credential))) continue;
    passed[name] = value;
  }
  // The record is read from the answer on its way, so the upstream must not compress it.
  passed['accept-encoding'] = 'identity';
  if (target.api_key !== null) passed['authorization'] = `Bearer ${target.api_key}`;
  return passed;
}

/**
 * Returns the headers of an upstream's answer that the caller gets, names and values in turn.
 * @param rewritten whether the caller gets another body than the upstream sent, so that the upstream's length does not hold
 */
export function answerHeaders(rawHeaders: readonly string[], rewritten: boolean): string[] {
  const hop = hopNames(valuesOf(rawHeaders, 'connection').join(','));
  const passed: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lower = name.toLowerCase();
    if (!passes(lower, ANSWER_HEADERS, ANSWER_PREFIXES) || hop.has(lower)) continue;
    if (rewritten && lower === 'content-length') continue;
    passed.push(name, rawHeaders[i + 1] ?? '');
  }
  return passed;
}

const valuesOf = (rawHeaders: readonly string[], name: string): string[] =>
  rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
