// Reads a call as its caller made it: operation, model, labels of its span, and the headers for the
// upstream. Takes headers and body; returns what the gateway needs to call an upstream, budget the
// call and record it. The text of the body is kept as it was sent.
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { rawCredentialOf } from '../../http/auth.ts';
import { MalformedBody, parseJson } from '../../http/body.ts';
import { ApiError } from '../../http/errors.ts';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';
import { setMember } from './json_members.ts';
import { type Fields, isFields } from './values.ts';

/** chat stands for /chat/completions. */
export type Operation = 'chat' | 'responses' | 'embeddings';

/** The labels of a call's span, from the X-Service-* headers. */
export interface CallLabels {
  trace_id: string;
  span_id: string;
  parent_span_id: string | null;
  agent_id: string | null;
  session_id: string | null;
  user_id: string | null;
  tags: readonly string[];
  /** Attributes that name the prompt of the registry behind the call: prompt_name, prompt_version, prompt_variables. */
  prompt: Readonly<Record<string, unknown>>;
}

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

const ID = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/;
const LABEL_LENGTH_MAX = 512;
const TAGS_MAX = 64;
const TAG_LENGTH_MAX = 256;
/** All headers of a request together have at most 16 KiB. */
const VARIABLES_LENGTH_MAX = 8192;

/**
 * Reads the labels, and generates ids that are missing.
 * @throws ApiError invalid_request
 */
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
    prompt: promptIn(headers),
  };
}

function promptIn(headers: IncomingHttpHeaders): Record<string, unknown> {
  const given = {
    prompt_name: labelIn(headers, 'X-Service-Prompt-Name'),
    prompt_version: labelIn(headers, 'X-Service-Prompt-Version'),
    prompt_variables: variablesIn(headers),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

function variablesIn(headers: IncomingHttpHeaders): Fields | null {
  const name = 'X-Service-Prompt-Variables';
  const text = textIn(headers, name);
  if (text === null) return null;
  const wrong = `${name}: must be a JSON object of at most ${VARIABLES_LENGTH_MAX} characters`;
  if (text.length > VARIABLES_LENGTH_MAX) throw new ApiError('invalid_request', wrong);
  try {
    const variables = parseJson(Buffer.from(text));
    if (isFields(variables)) return variables;
  } catch (error) {
    if (!(error instanceof MalformedBody)) throw error;
  }
  throw new ApiError('invalid_request', wrong);
}

function textIn(headers: IncomingHttpHeaders, name: string): string | null {
  const given = headers[name.toLowerCase()];
  const text = (Array.isArray(given) ? given.join(',') : (given ?? '')).trim();
  // Node reads header bytes beyond ASCII as latin1; clients mean UTF-8.
  return text === '' ? null : Buffer.from(text, 'latin1').toString('utf8');
}

function idIn(headers: IncomingHttpHeaders, name: string): string | null {
  const text = textIn(headers, name);
  if (text !== null && !ID.test(text))
    throw new ApiError('invalid_request', `${name}: must be 1 to 128 letters, digits or _ . : -, other than . and ..`);
  return text;
}

function labelIn(headers: IncomingHttpHeaders, name: string): string | null {
  const text = textIn(headers, name);
  if (text !== null && text.length > LABEL_LENGTH_MAX)
    throw new ApiError('invalid_request', `${name}: must be at most ${LABEL_LENGTH_MAX} characters`);
  return text;
}

function tagsIn(headers: IncomingHttpHeaders): string[] {
  const name = 'X-Service-Tags';
  const tags = (textIn(headers, name) ?? '')
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  if (tags.length > TAGS_MAX || tags.some((tag) => tag.length > TAG_LENGTH_MAX))
    throw new ApiError('invalid_request', `${name}: must be at most ${TAGS_MAX} tags of ${TAG_LENGTH_MAX} characters`);
  return tags;
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

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/**
 * Checks that the query, which goes upstream unchanged, does not hold the caller's credential.
 * @throws ApiError invalid_request
 */
export function checkQuery(path: string, headers: IncomingHttpHeaders): void {
  const at = path.indexOf('?');
  if (at < 0) return;
  const query = path.slice(at);
  const text = decoded(query) ?? query;
  if (credentialsOf(headers).some((credential) => query.includes(credential) || text.includes(credential)))
    throw new ApiError(
      'invalid_request',
      'query: must not hold a credential; send the key in Authorization or X-Org-Api-Key',
    );
}

/** Shorter credentials are not searched for in other headers: an ordinary word would match. */
const CREDENTIAL_LENGTH_MIN = 8;

/** Returns every credential that a caller sends, including those that another header overrides. */
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
 * Headers of a caller that pass to an upstream, besides those with one of REQUEST_PREFIXES. An
 * allowlist, because an unforeseen header may hold a credential or a cookie, or choose an account
 * under the operator's key.
 */
const REQUEST_HEADERS = new Set([
  'accept',
  'content-type',
  'user-agent',
  'x-client-request-id',
  // Names of applications, as OpenRouter and similar services read them.
  'http-referer',
  'x-title',
  'traceparent',
  'tracestate',
]);
const REQUEST_PREFIXES = ['openai-', 'x-stainless-'];

/**
 * Headers of an upstream's answer that pass to the caller, besides those with one of
 * ANSWER_PREFIXES.
 */
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

/** Returns the names in a Connection header, which apply to one hop only, in lower case. */
const hopNames = (connection: string | undefined): ReadonlySet<string> =>
  new Set(
    (connection ?? '')
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );

/**
 * Returns the headers for a target: those of the caller on the list, except any whose value holds
 * the caller's credential, and the target's own key.
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
  // The record is read from the answer on its way, so the upstream must not compress the answer.
  passed['accept-encoding'] = 'identity';
  if (target.api_key !== null) passed['authorization'] = `Bearer ${target.api_key}`;
  return passed;
}

/**
 * Returns the headers of an upstream's answer that pass to the caller, names and values in turn.
 * @param rewritten true if the body for the caller differs from the upstream's, so that the
 * upstream's length does not apply
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
