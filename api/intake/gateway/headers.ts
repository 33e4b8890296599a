// The headers that pass between a caller and an upstream, and the credentials in them. Takes the
// headers of either side; returns those of a list for the other. No credential of a caller passes,
// except the caller's own one to an upstream that takes it.
import type { IncomingHttpHeaders } from 'node:http';
import { KEY_PREFIX, rawCredentialOf, unauthenticated } from '../../http/auth.ts';
import { ApiError } from '../../http/errors.ts';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';
import { decoded } from './values.ts';

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
    headers['x-api-key'],
    heliconeKey(headers),
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
  // Names of the client and of its session, as Anthropic reads them.
  'x-app',
  'x-claude-code-session-id',
  'x-claude-code-agent-id',
  'traceparent',
  'tracestate',
]);
const REQUEST_PREFIXES = ['openai-', 'anthropic-', 'x-stainless-'];

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
  // The upstream's id of an answer, which Anthropic's clients report.
  'request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
]);
const ANSWER_PREFIXES = ['openai-', 'anthropic-', 'x-ratelimit-'];

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
 * Returns the headers of a request to the Anthropic API for authentication: a key in x-api-key counts
 * as the service's, unless X-Org-Api-Key holds that.
 * @throws ApiError unauthenticated where x-api-key and Authorization hold different credentials
 */
export function anthropicAuth(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const key = headers['x-api-key'];
  if (headers['x-org-api-key'] !== undefined || typeof key !== 'string' || key === '') return headers;
  const bearer = /^bearer\s+(\S+)$/i.exec(headers.authorization?.trim() ?? '')?.[1];
  if (headers.authorization !== undefined && bearer !== key)
    throw unauthenticated(
      'x-api-key and Authorization hold different credentials. Send the API key of this service in one of them, or in both.',
    );
  return { ...headers, 'x-org-api-key': key };
}

/** Returns the API key of the service in Helicone-Auth, which its clients send as a bearer token. */
function heliconeKey(headers: IncomingHttpHeaders): string | undefined {
  const given = headers['helicone-auth'];
  const text = (Array.isArray(given) ? given[0] : given)?.trim();
  return text === undefined || text === '' ? undefined : text.replace(/^bearer /i, '').trim();
}

/**
 * Returns the headers of a request for authentication: the key in Helicone-Auth counts as the
 * service's, unless X-Org-Api-Key holds that.
 */
export function heliconeAuth(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const key = heliconeKey(headers);
  return key === undefined || headers['x-org-api-key'] !== undefined ? headers : { ...headers, 'x-org-api-key': key };
}

/**
 * Returns the caller's own credential for an upstream, in the headers in which it came. Null without
 * one: a key of this service is never passed on.
 */
export function ownCredential(headers: IncomingHttpHeaders): Record<string, string> | null {
  const service = headers['x-org-api-key'] ?? heliconeKey(headers);
  if (typeof service !== 'string' || service === '') return null;
  const own: Record<string, string> = {};
  for (const name of ['authorization', 'x-api-key'] as const) {
    const value = headers[name];
    if (typeof value === 'string' && value !== '' && !value.includes(service) && !value.includes(KEY_PREFIX))
      own[name] = value;
  }
  return Object.keys(own).length === 0 ? null : own;
}

/**
 * Returns the targets that a caller can use: those that take the caller's own credential need one.
 * @throws ApiError unauthenticated where that leaves none
 */
export function usableTargets(
  headers: IncomingHttpHeaders,
  targets: readonly GatewayTarget[],
): readonly GatewayTarget[] {
  if (targets.every(({ credential }) => credential === 'operator') || ownCredential(headers) !== null) return targets;
  const left = targets.filter(({ credential }) => credential === 'operator');
  if (left.length > 0) return left;
  throw unauthenticated(
    "The route of this model takes the caller's own credential: send the API key of this service in X-Org-Api-Key, and the provider's key in Authorization or x-api-key.",
  );
}

/**
 * Returns the headers for a target: those of the caller on the list, except any whose value holds
 * the caller's credential, and the credential of the target.
 */
export function headersFor(
  headers: IncomingHttpHeaders,
  target: Pick<GatewayTarget, 'api' | 'api_key' | 'credential'>,
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
  return Object.assign(passed, credentialFor(headers, target));
}

function credentialFor(
  headers: IncomingHttpHeaders,
  { api, api_key, credential }: Pick<GatewayTarget, 'api' | 'api_key' | 'credential'>,
): Record<string, string> {
  if (credential === 'caller') return ownCredential(headers) ?? {};
  if (api_key === null) return {};
  return api === 'anthropic' ? { 'x-api-key': api_key } : { authorization: `Bearer ${api_key}` };
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
