// Reads the labels of a call's span: the X-Service-* headers, those of Helicone that say the same, the traceparent of an instrumented
// caller, and what Claude Code says of its session. Takes headers and request; returns labels with
// generated ids where none are given.
import { hash, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { MalformedBody, parseJson } from '../../http/body.ts';
import { ApiError } from '../../http/errors.ts';
import { type Fields, isFields } from './values.ts';

/** The labels of a call's span, from the X-Service-* headers. */
export interface CallLabels {
  trace_id: string;
  span_id: string;
  parent_span_id: string | null;
  agent_id: string | null;
  session_id: string | null;
  user_id: string | null;
  tags: readonly string[];
  /**
   * Attributes that headers set: those that name the prompt of the registry behind the call
   * (prompt_name, prompt_version, prompt_variables), and the properties of a client of Helicone.
   */
  attributes: Readonly<Record<string, unknown>>;
  /** True if the caller named the trace, in X-Service-Trace-Id or traceparent. */
  named: boolean;
}

const ID = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/;
const LABEL_LENGTH_MAX = 512;
const TAGS_MAX = 64;
const TAG_LENGTH_MAX = 256;
/** All headers of a request together have at most 16 KiB. */
const VARIABLES_LENGTH_MAX = 8192;

/** A W3C traceparent. Versions after 00 may be longer. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;

/** Returns the span that a traceparent names; null without one, and for one that is not valid. */
function callerSpan(headers: IncomingHttpHeaders): { trace_id: string; span_id: string } | null {
  const given = headers['traceparent'];
  const [, version, trace_id, span_id, more] = TRACEPARENT.exec(typeof given === 'string' ? given.trim() : '') ?? [];
  if (trace_id === undefined || span_id === undefined || (version === '00' && more !== undefined)) return null;
  return { trace_id, span_id };
}

/**
 * Reads the labels, and generates ids that are missing. X-Service-Trace-Id wins over a traceparent
 * of another trace. In the trace of a traceparent the ids are hexadecimal.
 * @throws ApiError invalid_request
 */
export function labelsOf(headers: IncomingHttpHeaders): CallLabels {
  const random = randomUUID().replaceAll('-', '');
  const named = idIn(headers, 'X-Service-Trace-Id');
  const caller = callerSpan(headers);
  const parent = caller !== null && (named === null || named === caller.trace_id) ? caller : null;
  return {
    trace_id: named ?? parent?.trace_id ?? `trc_${random.slice(0, 16)}`,
    span_id: parent === null ? `spn_${random.slice(16)}` : hash('sha256', random, 'hex').slice(0, 16),
    parent_span_id: idIn(headers, 'X-Service-Parent-Span-Id') ?? parent?.span_id ?? null,
    agent_id: labelIn(headers, 'X-Service-Agent-Id'),
    session_id: labelIn(headers, 'X-Service-Session-Id') ?? labelIn(headers, 'Helicone-Session-Id'),
    user_id: labelIn(headers, 'X-Service-User-Id') ?? labelIn(headers, 'Helicone-User-Id'),
    tags: tagsIn(headers),
    attributes: { ...promptIn(headers), ...propertiesIn(headers) },
    named: named !== null || parent !== null,
  };
}

const PROPERTY = 'helicone-property-';

/** Returns the attributes that the headers of a client of Helicone set; names are in lower case. */
function propertiesIn(headers: IncomingHttpHeaders): Record<string, unknown> {
  const properties = Object.keys(headers)
    .filter((name) => name.startsWith(PROPERTY) && name.length > PROPERTY.length)
    .flatMap((name): [string, string][] => {
      const text = labelIn(headers, name);
      return text === null ? [] : [[name.slice(PROPERTY.length), text]];
    });
  const given = {
    session_path: labelIn(headers, 'Helicone-Session-Path'),
    session_name: labelIn(headers, 'Helicone-Session-Name'),
    properties: properties.length === 0 ? null : Object.fromEntries(properties),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
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

/** The metadata.user_id of Claude Code before it became JSON. */
const OLD_USER_ID = /^user_([0-9a-f]+)_account_([0-9a-f-]*)_session_([0-9a-f-]+)$/;

interface ClientIds {
  session_id: string | null;
  user_id: string | null;
}

/**
 * Returns the session and the user that metadata.user_id of a messages call names. Claude Code writes
 * its session into it; other clients write an id of their user.
 */
function idsIn(metadata: unknown): ClientIds {
  const given = isFields(metadata) ? metadata['user_id'] : null;
  if (typeof given !== 'string' || given === '' || given.length > LABEL_LENGTH_MAX)
    return { session_id: null, user_id: null };
  const old = OLD_USER_ID.exec(given);
  if (old !== null) return { session_id: old[3] ?? null, user_id: textOr(old[2], old[1]) };
  if (!given.startsWith('{')) return { session_id: null, user_id: given };
  try {
    const ids: unknown = JSON.parse(given);
    if (!isFields(ids)) return { session_id: null, user_id: given };
    return { session_id: textOr(ids['session_id']), user_id: textOr(ids['account_uuid'], ids['device_id']) };
  } catch {
    return { session_id: null, user_id: given };
  }
}

const textOr = (...values: unknown[]): string | null =>
  values.find((value): value is string => typeof value === 'string' && value !== '') ?? null;

/**
 * Adds to the labels of a messages call what its client says: session and user where no
 * X-Service-* header names them. The calls of one turn of Claude Code share a trace, unless the
 * caller names one: the model is called again after each tool with the same conversation and the
 * tool's result.
 * @throws ApiError invalid_request
 */
export function labelsOfMessages(labels: CallLabels, headers: IncomingHttpHeaders, request: Fields): CallLabels {
  const header = labelIn(headers, 'X-Claude-Code-Session-Id');
  const ids = idsIn(request['metadata']);
  const coding = header ?? ids.session_id;
  const turn = coding === null || labels.named ? null : turnOf(coding, request['messages']);
  return {
    ...labels,
    trace_id: turn ?? labels.trace_id,
    session_id: labels.session_id ?? coding,
    user_id: labels.user_id ?? ids.user_id,
  };
}

/**
 * Returns the trace of a turn: the same id for every call whose last message of the person is the
 * same one of the session. Null without such a message.
 */
function turnOf(session_id: string, messages: unknown): string | null {
  if (!Array.isArray(messages)) return null;
  const at = messages.findLastIndex((message: unknown) => isFields(message) && isByPerson(message));
  if (at < 0) return null;
  const { content } = messages[at] as Fields;
  const texts = Array.isArray(content)
    ? (content as unknown[]).map((block) => (isFields(block) && typeof block['text'] === 'string' ? block['text'] : ''))
    : [String(content)];
  return `trc_${hash('sha256', JSON.stringify([session_id, at, texts]), 'hex').slice(0, 16)}`;
}

/** Returns true for a message of the user that holds no result of a tool. */
function isByPerson({ role, content }: Fields): boolean {
  if (role !== 'user') return false;
  if (!Array.isArray(content)) return typeof content === 'string';
  return !(content as unknown[]).some((block) => isFields(block) && block['type'] === 'tool_result');
}
