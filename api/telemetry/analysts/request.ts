// Reads a request of an analyst in ClickHouse's HTTP protocol: its login, and the parameters that
// are forwarded to the engine. Pure. Parameters that are not known to be harmless are rejected;
// those that only select a way of working that the service decides are dropped.
import type { IncomingHttpHeaders } from 'node:http';
import { ORG_CHANGEABLE, ORG_SECONDS_MAX } from '../../../sql/analysts/org_views.ts';
import { isAllowedFormat, type Refusal } from './check.ts';

export interface Login {
  user: string;
  password: string;
}

export interface Asked {
  /** The part of the query in the URL; the rest is the body. */
  query: string;
  /** Parameters for the engine, besides those that the service adds. */
  params: URLSearchParams;
  /** The client's own query id, which the response names. */
  query_id: string | null;
}

/**
 * The engine's limit ends a query before the service's does, so that the response can give the
 * reason.
 */
export const ENGINE_SECONDS_MAX = ORG_SECONDS_MAX - 3;

const SWITCHES = new Set(['enable_http_compression', 'wait_end_of_query', 'compress']);
/** Parameters that are dropped, since the service sets its own. */
const LEFT_OUT =
  /^(user|password|quota_key|log_comment|readonly|query_id|send_progress_in_http_headers|http_headers_progress_interval_ms|cancel_http_readonly_queries_on_client_close|add_http_cors_header|http_(connection|send|receive)_timeout|http_zlib_compression_level|buffer_size|http_response_buffer_size|output_format_write_statistics)$/;
const PARAMETER = /^param_\w{1,100}$/;
const QUERY_ID = /^[\w.:-]{1,100}$/;

/** Returns the login of a request, or null for a request that does not use this protocol. */
export function loginOf(headers: IncomingHttpHeaders, params: URLSearchParams): Login | null {
  const user = textOf(headers['x-clickhouse-user']);
  if (user !== undefined) return { user, password: textOf(headers['x-clickhouse-key']) ?? '' };
  const basic = /^Basic ([\w+/=-]+)$/i.exec(headers.authorization ?? '')?.[1];
  if (basic !== undefined) {
    const text = Buffer.from(basic, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    return colon === -1
      ? { user: text, password: '' }
      : { user: text.slice(0, colon), password: text.slice(colon + 1) };
  }
  const named = params.get('user');
  return named === null ? null : { user: named, password: params.get('password') ?? '' };
}

/**
 * Reads the parameters of the URL and the headers that replace some of them. @param database
 * database of the views
 */
export function readAsked(headers: IncomingHttpHeaders, given: URLSearchParams, database: string): Asked | Refusal {
  const params = new URLSearchParams();
  const query: string[] = [];
  let named = textOf(headers['x-clickhouse-database']) ?? null;
  let format = textOf(headers['x-clickhouse-format']) ?? null;
  let seconds = ENGINE_SECONDS_MAX;
  for (const [name, value] of given) {
    if (name === 'query') query.push(value);
    else if (name === 'database') named = value;
    else if (name === 'default_format') format = value;
    else if (name === 'max_execution_time') {
      const asked = Number(value);
      if (!(asked > 0 && asked <= ORG_SECONDS_MAX))
        return fixed(name, `must be more than 0 and up to ${ORG_SECONDS_MAX} seconds`);
      seconds = Math.max(1, Math.min(ENGINE_SECONDS_MAX, Math.ceil(asked)));
    } else if (PARAMETER.test(name) || Object.hasOwn(ORG_CHANGEABLE, name)) params.set(name, value);
    else if (SWITCHES.has(name)) params.set(name, value === '1' || value === 'true' ? '1' : '0');
    else if (name === 'client_protocol_version' && /^\d{1,6}$/.test(value)) params.set(name, value);
    else if (name === 'decompress' && value === '0') continue;
    else if (!LEFT_OUT.test(name)) return fixed(name, 'cannot be set here');
  }
  if (query.length > 1) return { code: 36, type: 'BAD_ARGUMENTS', message: 'query: is given more than once' };
  if (named !== null && named !== '' && named !== 'default' && named !== database)
    return { code: 81, type: 'UNKNOWN_DATABASE', message: `Database ${named} does not exist` };
  if (format !== null && !isAllowedFormat(format))
    return { code: 497, type: 'ACCESS_DENIED', message: `Not for analysts: format ${format}` };
  if (format !== null) params.set('default_format', format);
  params.set('database', database);
  params.set('max_execution_time', String(seconds));
  const query_id = given.get('query_id');
  return { query: query[0] ?? '', params, query_id: query_id !== null && QUERY_ID.test(query_id) ? query_id : null };
}

/** Returns the query as the engine would join it: the part in the URL, then the body. */
export function joinQuery(inUrl: string, body: Buffer): string | Refusal {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return { code: 36, type: 'BAD_ARGUMENTS', message: 'the query is not UTF-8' };
  }
  const query = inUrl === '' || text === '' ? inUrl + text : `${inUrl}\n${text}`;
  if (query.includes('\0')) return { code: 62, type: 'SYNTAX_ERROR', message: 'the query contains a zero byte' };
  return query.trim() === '' ? { code: 62, type: 'SYNTAX_ERROR', message: 'Empty query' } : query;
}

const textOf = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);
const fixed = (name: string, what: string): Refusal => ({
  code: 164,
  type: 'READONLY',
  message: `Setting ${name} ${what}`,
});
