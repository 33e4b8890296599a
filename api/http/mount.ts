// Serves declared routes on Express: authorizes, checks version and input, runs the handler once
// (Idempotency-Key) and responds. Everything that a route needs around its handler is here; what a
// handler throws becomes an error response.
import { hash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Express, Request, Response } from 'express';
import type { Logger } from 'pino';
import { deeperThan, DEPTH_MAX } from '../../pipeline/domain/text/nesting.ts';
import { wellFormedJson } from '../../pipeline/domain/text/well_formed.ts';
import { tenantOfOrg } from '../../ops/platform/tenant_token.ts';
import type { AuditTrail } from './audit.ts';
import { audited, NO_NOTES } from './audited.ts';
import { authenticate, type AuthDeps, rawCredentialOf } from './auth.ts';
import { checkJsonType, MalformedBody, parseJson, readBody } from './body.ts';
import type { ApiKeyCredential, Credential, OrgCredential, PersonCredential } from './credential.ts';
import { sendText } from './compress.ts';
import { envelope, jsonHeaders, sendError, sendJson } from './envelope.ts';
import { ApiError, type StoreErrorClassifier, toApiError } from './errors.ts';
import { deprecationHeaders } from './deprecation.ts';
import { type Idempotency, idempotencyKey, type IdempotentRequest } from './idempotency.ts';
import { checkQueryNames, familiesFolded } from './query_params.ts';
import { fieldOf, isGrantInBody, permitRoute } from './permit_route.ts';
import { PORTAL_PREFIX, type RateLimits } from './rate_limit.ts';
import { REQUEST_ID_HEADER } from './request_id.ts';
import { type AnyContext, type Route, templateOf } from './route.ts';
import { isOfOwnPage } from './session_cookie.ts';
import { discardBody } from './unread_body.ts';
import { parsePart } from './validate.ts';
import { checkPinnedVersion, VERSION_HEADER } from './version.ts';

/** Dependencies of serving besides the routes. */
export interface EdgeDeps {
  auth: AuthDeps;
  limits: RateLimits;
  /**
   * Charges one request to the rate of an API key. Returns the error where the rate is used up;
   * null where there is nothing to wait for.
   */
  keyRequests: (key: ApiKeyCredential) => Promise<ApiError | null> | ApiError | null;
  audit: AuditTrail;
  idempotency: Idempotency;
  classifyStore: StoreErrorClassifier;
  bodyBytesMax: number;
  /** Milliseconds since the epoch. */
  now: () => number;
  log: Logger;
  /** Called after every response. `route` is a pattern, never a raw path. */
  observe: (route: string, method: string, status: number, seconds: number) => void;
}

/** The id and route of a request, found by its response. */
interface Attendance {
  request_id: string;
  route: string;
}
const attendances = new WeakMap<ServerResponse, Attendance>();

/**
 * Begins a request: its id is on every response, and its time is measured to the end of the
 * response.
 */
export function attend(req: IncomingMessage, res: ServerResponse, requestId: string, deps: EdgeDeps): void {
  const attendance: Attendance = { request_id: requestId, route: 'unknown' };
  attendances.set(res, attendance);
  res.setHeader(REQUEST_ID_HEADER, requestId);
  const began = performance.now();
  res.once('close', () => {
    deps.observe(attendance.route, req.method ?? '', res.statusCode, (performance.now() - began) / 1000);
  });
}

function requestIdOf(res: ServerResponse): string {
  return attendances.get(res)?.request_id ?? '';
}

/** Mounts the routes. Another method on one of their paths is 405 with Allow. */
export function mountRoutes(app: Express, routes: readonly Route[], deps: EdgeDeps): void {
  const methods = new Map<string, Set<string>>();
  for (const route of routes) {
    app[route.method](route.path, (req, res) => serve(route, req, res, deps));
    const known = methods.get(route.path) ?? new Set();
    known.add(route.method.toUpperCase());
    if (route.method === 'get') known.add('HEAD');
    methods.set(route.path, known);
  }
  for (const [path, allowed] of methods) {
    const allow = [...allowed].sort().join(', ');
    app.all(path, async (req, res) => {
      mark(res, templateOf(path));
      await answerError(
        req,
        res,
        new ApiError('method_not_allowed', `This path accepts ${allow}.`, { headers: { Allow: allow } }),
        deps,
      );
    });
  }
}

/** Sends an error, and logs what a client must not see. */
export async function answerError(
  req: IncomingMessage,
  res: ServerResponse,
  thrown: unknown,
  deps: EdgeDeps,
): Promise<void> {
  const error = toApiError(thrown, deps.classifyStore);
  const request_id = requestIdOf(res);
  if (error.status >= 500)
    deps.log.error(
      { request_id, route: attendances.get(res)?.route, code: error.code, err: error.cause ?? error },
      'request failed',
    );
  await discardBody(req, res, error.status);
  sendError(res, error, request_id);
}

/** Names what answers a request, for the metrics. */
export function mark(res: ServerResponse, template: string): void {
  const attendance = attendances.get(res);
  if (attendance !== undefined) attendance.route = template;
}

async function serve(route: Route, req: Request, res: Response, deps: EdgeDeps): Promise<void> {
  mark(res, templateOf(route.path));
  try {
    const pathOrg = textOf(route.org_in_query === true ? req.query['org_id'] : req.params['org_id']);
    const asked = { method: req.method, headers: req.headers, pathOrg };
    const credential = await authenticate(route.access, asked, deps.auth);
    checkRate(credential, req, res, deps.limits);
    if (credential.kind === 'api_key' && credential.limits !== undefined) {
      const refused = await deps.keyRequests(credential);
      if (refused !== null) throw refused;
    }
    // The body is read first only for a caller whom nothing but a grant on what it names could
    // admit. A body that cannot be read names nothing.
    const early = isGrantInBody(route, credential) ? await rawBody(route, req, deps).catch(() => null) : null;
    const named = { params: req.params, query: req.query, field: (name: string) => namedIn(early, name) };
    permitRoute(route, { credential, asked, named }, deps.auth);
    checkPinnedVersion(req.headers[VERSION_HEADER]);
    if (route.any_query !== true) checkQueryNames(route.query, req.query);
    for (const [name, value] of deprecationHeaders(route)) res.setHeader(name, value);
    const key = route.method === 'post' ? idempotencyKey(req.headers['idempotency-key']) : null;
    const raw =
      route.method === 'get' || route.method === 'delete' ? null : (early ?? (await rawBody(route, req, deps)));
    const abort = new AbortController();
    res.once('close', () => {
      if (!res.writableFinished) abort.abort();
    });
    const ctx: AnyContext = {
      credential,
      org_id: 'org_id' in credential ? credential.org_id : '',
      request_id: requestIdOf(res),
      params: parsePart(route.params, req.params),
      query: parsePart(route.query, familiesFolded(route.query, req.query)),
      body: route.body === null || raw === null ? undefined : parsePart(route.body, givenBody(route, raw)),
      req,
      res,
      signal: abort.signal,
      audit: NO_NOTES,
    };
    const out = key === null || raw === null ? await run(route, ctx, deps) : await runKeyed(route, ctx, key, raw, deps);
    if (out !== null) await send(res, route, out);
  } catch (error) {
    if (res.destroyed && !res.writableFinished) return;
    await answerError(req, res, error, deps);
  }
}

/** Sends the response; compressed where it is large, unless it holds a secret. */
async function send(res: Response, { secret }: Route, { status, body, headers }: Answer): Promise<void> {
  const request_id = requestIdOf(res);
  if (secret === true) sendJson(res, status, request_id, body, headers);
  else await sendText(res, status, wellFormedJson(body), { ...jsonHeaders(request_id), ...headers });
}

async function rawBody(route: Route, req: IncomingMessage, deps: EdgeDeps): Promise<Buffer> {
  if (route.body !== null) checkJsonType(req.headers['content-type']);
  try {
    return await readBody(req, { bytesMax: deps.bodyBytesMax });
  } catch (error) {
    throw error instanceof MalformedBody
      ? new ApiError('invalid_request', `body: ${error.message}`, { cause: error })
      : error;
  }
}

/**
 * Parses the body of a request. The body of a PUT or PATCH says what to change, so an empty one is
 * rejected.
 */
function givenBody({ method }: Route, raw: Buffer): unknown {
  if (raw.length === 0 && (method === 'put' || method === 'patch'))
    throw new ApiError('invalid_request', 'body: is empty; must be a JSON object with the fields to set');
  return parsedBody(raw);
}

/**
 * Parses a body. An empty body counts as an empty object, so that a POST whose fields are all
 * optional needs none.
 */
function parsedBody(raw: Buffer): unknown {
  if (raw.length === 0) return {};
  let body: unknown;
  try {
    body = parseJson(raw);
  } catch (error) {
    throw error instanceof MalformedBody
      ? new ApiError('invalid_request', `body: ${error.message}`, { cause: error })
      : error;
  }
  if (deeperThan(body, DEPTH_MAX))
    throw new ApiError('invalid_request', `body: is nested deeper than ${DEPTH_MAX} levels`);
  return SURROGATES.some((escape) => raw.includes(escape)) ? JSON.parse(wellFormedJson(JSON.stringify(body))) : body;
}

/** The beginnings of every escape of a surrogate, paired or not. */
const SURROGATES = ['\\ud', '\\uD'];

/** The response to send; null when the handler has streamed it. */
interface Answer {
  status: number;
  body: string;
  headers: Record<string, string>;
  /** True if the request changed something, according to the audit log. */
  changed: boolean;
}

async function run(route: Route, ctx: AnyContext, deps: EdgeDeps): Promise<Answer | null> {
  const { result, changed } = await audited(route, ctx, deps.audit);
  if ('streamed' in result) return null;
  const body =
    'bare' in result ? JSON.stringify(result.bare) : envelope(result.data, ctx.request_id, deps.now(), result.meta);
  return { status: result.status ?? route.status ?? 200, body, headers: result.headers ?? {}, changed };
}

/** Runs the handler with the caller's Idempotency-Key. */
function runKeyed(route: Route, ctx: AnyContext, key: string, raw: Buffer, deps: EdgeDeps): Promise<Answer | null> {
  const request = { tenant: keySpaceOf(ctx.credential), endpoint: `POST ${ctx.req.url ?? ''}`, key, body: raw };
  if (route.media !== undefined) return runMarked(route, ctx, request, deps);
  return runOnce(
    route,
    ctx,
    route.secret === true ? { ...request, sealWith: sealerOf(ctx.credential, ctx.req.headers) } : request,
    deps,
  );
}

/**
 * Runs a handler that streams. Streamed responses only read and are not stored: a repeat runs
 * again, with the same body.
 */
async function runMarked(
  route: Route,
  ctx: AnyContext,
  request: IdempotentRequest,
  deps: EdgeDeps,
): Promise<Answer | null> {
  const free = await deps.idempotency.mark(request);
  try {
    return await run(route, ctx, deps);
  } catch (error) {
    await free();
    throw error;
  }
}

/** Runs the handler, or returns its stored response. */
async function runOnce(
  route: Route,
  ctx: AnyContext,
  request: IdempotentRequest,
  deps: EdgeDeps,
): Promise<Answer | null> {
  const begun = await deps.idempotency.begin(request);
  if ('replay' in begun) return { ...begun.replay, headers: { 'Idempotency-Replayed': 'true' }, changed: false };
  let out: Answer | null = null;
  try {
    out = await run(route, ctx, deps);
  } finally {
    // A response with a cookie holds a secret and is not stored; it changes nothing else, so a
    // repeat may set the cookie again.
    if (out !== null && out.status < 300 && out.headers['Set-Cookie'] === undefined)
      await begun.lock.keep({ status: out.status, body: out.body }, { changed: out.changed });
    else await begun.lock.release();
  }
  return out;
}

/**
 * Returns the tenant of the caller's Idempotency-Keys: an organization, or a caller that belongs to
 * none.
 */
function keySpaceOf(credential: Credential): string {
  if (credential.kind === 'person') return `person:${credential.user_id}`;
  return 'org_id' in credential ? tenantOfOrg(credential.org_id) : credential.kind;
}

/**
 * Returns the value that seals the caller's stored responses: the key itself, or the user id,
 * because a person's token changes.
 */
function sealerOf(credential: Credential, headers: IncomingHttpHeaders): string {
  if ('user_id' in credential) return `user:${credential.user_id}`;
  return `key:${rawCredentialOf(headers) ?? ''}`;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/**
 * Returns a field of a body; undefined for invalid JSON, which is reported when the body is parsed
 * for the handler.
 */
function namedIn(raw: Buffer | null, field: string): unknown {
  if (raw === null) return undefined;
  try {
    return fieldOf(parsedBody(raw), field);
  } catch {
    return undefined;
  }
}

/**
 * Charges one request to the tenant's API rate, or to the person's own where a page of the portal sent it. A person
 * without an organization has a rate of its own, the operator none.
 */
function checkRate(credential: Credential, req: Request, res: Response, limits: RateLimits): void {
  if (credential.kind === 'operator' || credential.kind === 'anonymous') return;
  const { allowed, headers } = limits.take('api', chargedTenant(credential, req.headers), 1);
  for (const name in headers) res.setHeader(name, headers[name] ?? '');
  if (!allowed)
    throw new ApiError('rate_limited', 'Too many API requests. Retry after the number of seconds in Retry-After.');
}

function chargedTenant(credential: OrgCredential | PersonCredential, headers: IncomingHttpHeaders): string {
  const org_id = 'org_id' in credential ? credential.org_id : '';
  if ('user_id' in credential && isOfOwnPage(headers))
    // A digest, as the two ids together may be longer than the name of a tenant.
    return PORTAL_PREFIX + hash('sha256', `${org_id}\n${credential.user_id}`, 'base64url');
  return credential.kind === 'person' ? `person:${credential.user_id}` : org_id;
}
