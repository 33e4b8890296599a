// Serves the Model Context Protocol at /mcp, ahead of Express. The edge's own code authenticates,
// charges the rate, bounds the body and counts the request; the protocol's package gets a web Request
// with the body that was read and gives a web Response, which is written as it arrives. A request
// without a valid credential never reaches it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { authenticateOrg, hasCredentialHeader } from '../http/auth.ts';
import { MalformedBody, readBody } from '../http/body.ts';
import { callRoute, type RouteInput } from '../http/call_route.ts';
import type { OrgCredential } from '../http/credential.ts';
import { ApiError, toApiError } from '../http/errors.ts';
import { answerError, attend, type EdgeDeps, mark } from '../http/mount.ts';
import { newRequestId } from '../http/request_id.ts';
import type { Route } from '../http/route.ts';
import { MCP_PATH, METADATA_PATH, originOf } from './address.ts';
import type { RouteAnswers } from './route_answers.ts';
import { createServer } from './server.ts';
import type { SqlAnswer, ToolCall } from './tool.ts';

/** Maximum bytes of a message: items of a dataset are the largest. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;
/** Streams of change notifications that one process keeps open. */
const SUBSCRIPTIONS_MAX = 100;
/** Request headers that the protocol defines. */
const PASSED_HEADERS = [
  'accept',
  'content-type',
  'mcp-protocol-version',
  'mcp-session-id',
  'mcp-method',
  'mcp-name',
  'last-event-id',
];
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

export interface McpDeps {
  edge: EdgeDeps;
  /** Declared routes, which the tools call. */
  routes: readonly Route[];
  /** Origins of pages that may call it, besides those of this machine. */
  origins: readonly string[];
  /** True where people sign in with an OIDC provider, so that clients can. */
  hasProvider: boolean;
  /** The configured origin of the service. Tokens for its MCP server are accepted there. */
  publicUrl: string | undefined;
  runSql: (question: {
    org_id: string;
    user: string;
    sql: string;
    rowsMax: number;
    signal: AbortSignal;
  }) => Promise<SqlAnswer>;
}

export interface McpHandler {
  serve: (req: IncomingMessage, res: ServerResponse) => void;
  /** Ends open streams. */
  close: () => Promise<void>;
}

export const isForMcp = (url: string): boolean =>
  url === MCP_PATH || url.startsWith(`${MCP_PATH}?`) || url === `${MCP_PATH}/`;

/** Caller of a request, on its way through the package. */
interface Extra extends Record<string, unknown> {
  credential: OrgCredential;
  call: ToolCall;
}

export function createMcp(deps: McpDeps): McpHandler {
  const { edge } = deps;
  const routes = new Map(deps.routes.map((route) => [route.operation_id, route]));
  const toError = (thrown: unknown, tool: string): ApiError => {
    const error = toApiError(thrown, edge.classifyStore);
    if (error.status >= 500)
      edge.log.error({ tool, code: error.code, err: error.cause ?? error }, 'an MCP tool failed');
    return error;
  };
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const { credential, call } = authInfo?.extra as Extra;
      return createServer({ routes, toError }, credential, call);
    },
    {
      maxSubscriptions: SUBSCRIPTIONS_MAX,
      onerror: (error) => {
        edge.log.debug({ err: error }, 'an MCP request was refused');
      },
    },
  );
  return {
    serve: (req, res) => {
      const request_id = newRequestId();
      attend(req, res, request_id, edge);
      mark(res, MCP_PATH);
      const gone = new AbortController();
      res.once('close', () => {
        if (!res.writableFinished) gone.abort();
      });
      answer(req, res, { deps, routes, fetch: handler.fetch, request_id, signal: gone.signal }).catch(
        async (thrown: unknown) => {
          if (res.headersSent || gone.signal.aborted) res.destroy();
          else await answerError(req, res, withMetadata(thrown, req, deps), edge);
        },
      );
    },
    close: () => handler.close(),
  };
}

interface Serving {
  deps: McpDeps;
  routes: ReadonlyMap<string, Route>;
  fetch: ReturnType<typeof createMcpHandler>['fetch'];
  request_id: string;
  signal: AbortSignal;
}

async function answer(req: IncomingMessage, res: ServerResponse, serving: Serving): Promise<void> {
  const { deps, signal } = serving;
  const { edge } = deps;
  const url = new URL(req.url ?? MCP_PATH, originOf(req, deps.publicUrl));
  checkOrigin(req.headers.origin, deps);
  const credential = await callerOf(req, url, deps);
  const named = req.headers['x-org-id'] ?? url.searchParams.get('org_id');
  if (named !== null && named !== credential.org_id)
    throw new ApiError('cross_org_access', "X-Org-Id is not the credential's organization.");
  const { allowed, headers } = edge.limits.take('api', credential.org_id, 1);
  for (const name in headers) res.setHeader(name, headers[name] ?? '');
  if (!allowed)
    throw new ApiError('rate_limited', 'Too many API requests. Retry after the number of seconds in Retry-After.');
  if (req.method !== 'POST')
    throw new ApiError('method_not_allowed', 'This path accepts POST.', { headers: { Allow: 'POST' } });
  const body = await bodyOf(req);
  const request = new Request(url, { method: 'POST', headers: passedHeaders(req), body, signal });
  const extra: Extra = { credential, call: callOf(req, res, credential, serving) };
  const response = await serving.fetch(request, { authInfo: { token: '', clientId: '', scopes: [], extra } });
  await write(res, response, signal);
}

/** Returns the caller. Clients of people often take no header, so the address may name the organization. */
async function callerOf(req: IncomingMessage, url: URL, { edge, publicUrl }: McpDeps): Promise<OrgCredential> {
  const { method = '', headers } = req;
  const pathOrg = url.searchParams.get('org_id') ?? undefined;
  const audience = publicUrl === undefined ? undefined : `${publicUrl}${MCP_PATH}`;
  try {
    return await authenticateOrg({ method, headers, pathOrg, audience }, edge.auth);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'invalid_request') throw error;
    const detail = 'X-Org-Id: is needed with a token, or ?org_id= in the address';
    throw new ApiError('invalid_request', detail, { cause: error });
  }
}

async function bodyOf(req: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await readBody(req, { bytesMax: BODY_BYTES_MAX }));
  } catch (error) {
    throw error instanceof MalformedBody
      ? new ApiError('invalid_request', `body: ${error.message}`, { cause: error })
      : error;
  }
}

/** Returns the caller's access to the routes. */
function callOf(
  req: IncomingMessage,
  res: ServerResponse,
  credential: OrgCredential,
  { deps, routes, request_id, signal }: Serving,
): ToolCall {
  const { edge, runSql } = deps;
  const { org_id } = credential;
  return {
    route: async <O extends keyof RouteAnswers>(operation_id: O, input: RouteInput) => {
      const route = routes.get(operation_id);
      if (route === undefined) throw new Error(`there is no route ${operation_id}`);
      const { data, meta } = await callRoute(route, input, { credential, request_id, req, res, signal }, edge);
      return { data: data as RouteAnswers[O], meta };
    },
    sql: (sql, rowsMax) => runSql({ org_id, user: 'mcp', sql, rowsMax, signal }),
    org_id,
    now: edge.now(),
  };
}

/** A page of another site must not reach the service through a browser that can: DNS rebinding. */
function checkOrigin(origin: string | undefined, { origins }: McpDeps): void {
  if (origin === undefined || origins.includes(origin)) return;
  if (URL.canParse(origin) && LOOPBACK.has(new URL(origin).hostname)) return;
  throw new ApiError('forbidden', 'Origin: is not among the origins that may call this service.');
}

function passedHeaders({ headers }: IncomingMessage): Headers {
  const passed = new Headers();
  for (const name of PASSED_HEADERS) {
    const value = headers[name];
    if (typeof value === 'string') passed.set(name, value);
  }
  for (const [name, value] of Object.entries(headers))
    if (name.startsWith('mcp-param-') && typeof value === 'string') passed.set(name, value);
  return passed;
}

async function write(res: ServerResponse, response: Response, signal: AbortSignal): Promise<void> {
  for (const [name, value] of response.headers) res.setHeader(name, value);
  res.setHeader('Cache-Control', 'no-store');
  res.statusCode = response.status;
  if (response.body === null) {
    res.end();
    return;
  }
  res.flushHeaders();
  await pipeline(Readable.fromWeb(response.body), res, { signal });
}

/** Adds to a 401 where a client finds the provider to sign in with. */
function withMetadata(thrown: unknown, req: IncomingMessage, { hasProvider, publicUrl }: McpDeps): unknown {
  if (!hasProvider || !(thrown instanceof ApiError) || thrown.code !== 'unauthenticated') return thrown;
  const invalid = hasCredentialHeader(req.headers) ? 'error="invalid_token", ' : '';
  const challenge = `Bearer ${invalid}resource_metadata="${originOf(req, publicUrl)}${METADATA_PATH}"`;
  return new ApiError('unauthenticated', thrown.detail, { headers: { 'WWW-Authenticate': challenge }, cause: thrown });
}
