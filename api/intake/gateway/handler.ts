// Serves the gateway's paths as a plain function of (req, res), ahead of Express like ingest: an
// OpenAI-compatible API in front of upstreams. Takes calls of OpenAI's clients; sends the
// upstream's answer, byte for byte, or an error in OpenAI's shape. Every call of a model becomes a
// span, recorded after its answer is on its way. Hard budgets reserve an estimate before the call
// and settle its use after it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayRoutes } from '../../../ops/platform/llm/routes.ts';
import type { Admission } from '../../admission/admission.ts';
import type { AdmissionRequest } from '../../admission/admission_request.ts';
import { authenticateOrg, permit } from '../../http/auth.ts';
import { checkJsonType, MalformedBody, readBody } from '../../http/body.ts';
import { ApiError, toApiError } from '../../http/errors.ts';
import type { EdgeDeps } from '../../http/mount.ts';
import { newRequestId, REQUEST_ID_HEADER } from '../../http/request_id.ts';
import { discardBody } from '../../http/unread_body.ts';
import { checkPinnedVersion, VERSION_HEADER } from '../../http/version.ts';
import { answerHeaders, checkModelPath, checkQuery, headersFor, labelsOf, type Operation, readCall } from './call.ts';
import { invoke, type InvokeDeps } from './invoke.ts';
import { sendGatewayError } from './errors.ts';
import { ask, relay } from './exchange.ts';
import { Estimates } from './reserve.ts';

const CALLS_END_MS_MAX = 1000;
/** Status in the metrics of a request whose caller has disconnected; nothing is sent. */
const CLIENT_GONE = 499;

export interface GatewayDeps extends Omit<InvokeDeps, 'now' | 'estimates'> {
  edge: EdgeDeps;
  admission: Pick<Admission, 'begin'>;
  routes: GatewayRoutes;
  /** Responses in progress. Destroying one ends its call, which is recorded as far as it got. */
  open: Set<ServerResponse>;
  /** Organization of each response in progress, once it is known. */
  orgOf: WeakMap<ServerResponse, string>;
}

export interface GatewayPath {
  operation: Operation | 'models';
  /** Pattern for metrics and documentation. */
  pattern: string;
  /** Path below an upstream's base URL, with its query. */
  path: string;
}

const GATEWAY_PATH = /^\/v1\/(chat\/completions|responses|embeddings|models(?:\/[^/?#]+)?)\/?(?:\?|$)/;

/** Returns the gateway's path that a URL names; null for any other. */
export function gatewayPathOf(url: string): GatewayPath | null {
  const name = url.startsWith('/v1/') ? GATEWAY_PATH.exec(url)?.[1] : undefined;
  if (name === undefined) return null;
  const query = url.indexOf('?');
  const path = `/${name}${query < 0 ? '' : url.slice(query)}`;
  if (name.startsWith('models'))
    return { operation: 'models', pattern: name === 'models' ? '/v1/models' : '/v1/models/{model}', path };
  return {
    operation: name === 'chat/completions' ? 'chat' : (name as 'responses' | 'embeddings'),
    pattern: `/v1/${name}`,
    path,
  };
}

interface Serving extends GatewayDeps {
  invoking: InvokeDeps;
}

/**
 * Resolves once no call is in progress, or after CALLS_END_MS_MAX. A response ends a moment before
 * its call is settled.
 */
export async function callsEnded(open: ReadonlySet<unknown>): Promise<void> {
  for (const end = performance.now() + CALLS_END_MS_MAX; open.size > 0 && performance.now() < end;)
    await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Returns a function that serves the gateway's paths. It always sends a response. */
export function createGatewayHandler(
  deps: GatewayDeps,
): (req: IncomingMessage, res: ServerResponse, path: GatewayPath) => void {
  const estimates = new Estimates();
  const serving: Serving = { ...deps, invoking: { ...deps, estimates, now: deps.edge.now } };
  return (req, res, path) => {
    const began = performance.now();
    deps.open.add(res);
    void serve(req, res, path, serving).then((status) => {
      deps.open.delete(res);
      deps.edge.observe(path.pattern, req.method ?? '', status, (performance.now() - began) / 1000);
    });
  };
}

/** Serves a request. Resolves with the status that was sent. */
async function serve(req: IncomingMessage, res: ServerResponse, path: GatewayPath, deps: Serving): Promise<number> {
  const request_id = newRequestId();
  const headers: string[] = [];
  const admission = deps.admission.begin('gateway', (name, value) => headers.push(name, value));
  try {
    admission.arrived();
    await pass(req, res, path, { request_id, headers, admission }, deps).finally(() => {
      admission.release();
    });
    return res.headersSent ? res.statusCode : CLIENT_GONE;
  } catch (thrown) {
    if (req.destroyed && !req.complete) return CLIENT_GONE;
    const error = toApiError(thrown, () => null);
    if (error.status >= 500 && error.code !== 'upstream_not_configured')
      deps.edge.log.error(
        { request_id, code: error.code, err: error.cause ?? error },
        'a call through the gateway failed',
      );
    await discardBody(req, res, error.status);
    sendGatewayError(res, error, { request_id, headers });
    return error.status;
  }
}

interface Answering {
  request_id: string;
  /** Headers of every answer to the request, names and values in turn, as they become known. */
  headers: string[];
  admission: AdmissionRequest;
}

async function pass(
  req: IncomingMessage,
  res: ServerResponse,
  path: GatewayPath,
  answering: Answering,
  deps: Serving,
): Promise<void> {
  const { edge, routes } = deps;
  const { admission } = answering;
  const method = path.operation === 'models' ? 'GET' : 'POST';
  if (req.method !== method)
    throw new ApiError('method_not_allowed', `This path accepts ${method}.`, { headers: { Allow: method } });
  const asked = { method, headers: req.headers, pathOrg: undefined };
  const found = authenticateOrg(asked, edge.auth);
  const credential = found instanceof Promise ? await found : found;
  admission.identified(credential.org_id);
  permit('gateway:invoke', credential, asked, edge.auth);
  deps.orgOf.set(res, credential.org_id);
  checkPinnedVersion(req.headers[VERSION_HEADER]);
  if (routes.standard.length === 0) throw notConfigured();
  checkQuery(path.path, req.headers);
  admission.validated();
  if (path.operation === 'models') await passModels(req, res, path.path, answering, deps);
  else await passCall(req, res, { ...path, operation: path.operation, org_id: credential.org_id }, answering, deps);
}

interface ModelCall {
  operation: Operation;
  path: string;
  org_id: string;
}

/** Reads a call of a model, asks the upstreams and passes the answer on. */
async function passCall(
  req: IncomingMessage,
  res: ServerResponse,
  { operation, path, org_id }: ModelCall,
  answering: Answering,
  deps: Serving,
): Promise<void> {
  const { edge, routes } = deps;
  const labels = labelsOf(req.headers);
  answering.headers.push('X-Service-Trace-Id', labels.trace_id, 'X-Service-Span-Id', labels.span_id);
  checkJsonType(req.headers['content-type']);
  const bounds = { bytesMax: edge.bodyBytesMax, grow: answering.admission.reserveBytes };
  const raw = await readBody(req, bounds).catch(asInvalid);
  const call = readCall(operation, labels, raw);
  const targets = routes.targetsOf(call.model);
  if (targets.length === 0) throw notConfigured();
  await invoke({ org_id, call, targets, path, req, res, answering }, deps.invoking);
}

function asInvalid(error: unknown): never {
  if (error instanceof MalformedBody) throw new ApiError('invalid_request', `body: ${error.message}`, { cause: error });
  throw error;
}

function notConfigured(): ApiError {
  return new ApiError(
    'upstream_not_configured',
    'No upstream is configured for this model: set SERVICE_LLM_BASE_URL or SERVICE_GATEWAY_ROUTES.',
  );
}

/** Passes the upstream's list of models on. No model is called, so nothing is recorded. */
async function passModels(
  req: IncomingMessage,
  res: ServerResponse,
  path: string,
  { request_id, headers }: Answering,
  { routes }: GatewayDeps,
): Promise<void> {
  const [target] = routes.standard;
  if (target === undefined) throw notConfigured();
  checkModelPath(path);
  const begun = await ask(target, { method: 'GET', path, headers: headersFor(req.headers, target), body: null }, res);
  if (begun.failed === 'gone') return;
  if (begun.answer === null)
    throw new ApiError('upstream_unavailable', 'The upstream cannot be reached.', { cause: begun.cause });
  const { answer, request } = begun;
  const { ending, begun: sent } = await relay(answer, request, res, {
    timeout_ms: target.timeout_ms,
    streamed: false,
    begin: (length) => {
      const passed = answerHeaders(answer.rawHeaders, length !== null);
      if (length !== null) passed.push('Content-Length', String(length));
      res.writeHead(answer.statusCode ?? 200, [...passed, ...headers, REQUEST_ID_HEADER, request_id]);
    },
    take: (chunk) => chunk,
    rest: () => Buffer.alloc(0),
  });
  if (ending === 'complete' || ending === 'gone') return;
  if (!sent) throw new ApiError('upstream_unavailable', 'The upstream broke off the connection.');
  res.destroy();
}
