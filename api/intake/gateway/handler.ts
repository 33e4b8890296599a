// Serves the gateway's paths as a plain function of (req, res), ahead of Express like ingest: OpenAI's
// and Anthropic's APIs in front of upstreams that speak them. Takes calls of their clients; sends the
// upstream's answer, byte for byte, or an error in the shape of that API. Every call of a model
// becomes a span, recorded after its answer is on its way. Hard budgets reserve an estimate before
// the call and settle its use after it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayRoutes, GatewayTarget } from '../../../ops/platform/llm/routes.ts';
import type { Bag } from '../../../ops/platform/bag.ts';
import type { CaptureMode } from '../../../schemas/records/api_key.ts';
import type { JudgeRecord } from '../../../schemas/records/judge.ts';
import type { Admission } from '../../admission/admission.ts';
import type { AdmissionRequest } from '../../admission/admission_request.ts';
import type { EstimatedCall } from '../../admission/budget/uses.ts';
import { authenticateOrg, permit } from '../../http/auth.ts';
import { checkJsonType, MalformedBody, readBody } from '../../http/body.ts';
import type { OrgCredential } from '../../http/credential.ts';
import { ApiError, toApiError } from '../../http/errors.ts';
import type { EdgeDeps } from '../../http/mount.ts';
import { newRequestId, REQUEST_ID_HEADER } from '../../http/request_id.ts';
import { discardBody } from '../../http/unread_body.ts';
import { checkPinnedVersion, VERSION_HEADER } from '../../http/version.ts';
import { cacheKeyOf, type ResponseCache } from './cache.ts';
import { bodyFor, checkModelPath, type Operation, readCall } from './call.ts';
import { sendGatewayError } from './errors.ts';
import { relay } from './exchange.ts';
import { anthropicAuth, answerHeaders, checkQuery, headersFor, heliconeAuth, usableTargets } from './headers.ts';
import { answerFromCache } from './cached.ts';
import { guardPrompt, refuseBlocked } from './guarded.ts';
import { guardsOf } from './guards.ts';
import { type Invocation, invoke, type InvokeDeps } from './invoke.ts';
import { labelsOf, labelsOfMessages } from './labels.ts';
import type { GatewayPath } from './paths.ts';
import { Estimates } from './reserve.ts';
import { ask, type Asked } from './upstream.ts';

const CALLS_END_MS_MAX = 1000;
/** Status in the metrics of a request whose caller has disconnected; nothing is sent. */
const CLIENT_GONE = 499;

/** A request in progress. */
export interface OpenCall {
  /** Destroying it ends the call, which is recorded as far as it got. */
  res: ServerResponse;
  /** Null until the caller is known. */
  org_id: string | null;
}

export interface GatewayDeps extends Omit<InvokeDeps, 'now' | 'estimates' | 'cache'> {
  edge: EdgeDeps;
  admission: Pick<Admission, 'begin'>;
  routes: GatewayRoutes;
  open: Bag<OpenCall>;
  cache: ResponseCache;
  /** Returns the judges of an organization. */
  judgesOf: (org_id: string) => readonly JudgeRecord[];
  /** Returns how much of its calls an organization has stored. */
  captureOf: (org_id: string) => CaptureMode;
}

interface Serving extends GatewayDeps {
  invoking: InvokeDeps;
}

/**
 * Resolves once no call is in progress, or after CALLS_END_MS_MAX. A response ends a moment before
 * its call is settled.
 */
export async function callsEnded(open: { readonly size: number }): Promise<void> {
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
    const call: OpenCall = { res, org_id: null };
    const place = deps.open.add(call);
    void serve(req, call, path, serving).then((status) => {
      deps.open.remove(place);
      deps.edge.observe(path.pattern, req.method ?? '', status, (performance.now() - began) / 1000);
    });
  };
}

/** Serves a request. Resolves with the status that was sent. */
async function serve(req: IncomingMessage, open: OpenCall, path: GatewayPath, deps: Serving): Promise<number> {
  const { res } = open;
  const request_id = newRequestId();
  const headers: string[] = [];
  const admission = deps.admission.begin('gateway', (name, value) => headers.push(name, value));
  try {
    admission.arrived();
    await pass(req, res, path, { open, request_id, headers, admission }, deps).finally(() => {
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
    sendGatewayError(res, error, { api: path.api, request_id, headers });
    return error.status;
  }
}

interface Answering {
  open: OpenCall;
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
  if (path.operation === null) throw new ApiError('not_found', 'There is no such path.');
  const method = path.operation === 'models' ? 'GET' : 'POST';
  if (req.method !== method)
    throw new ApiError('method_not_allowed', `This path accepts ${method}.`, { headers: { Allow: method } });
  const given = heliconeAuth(req.headers);
  const headers = path.api === 'anthropic' ? anthropicAuth(given) : given;
  const asked = { method, headers, pathOrg: undefined };
  const found = authenticateOrg(asked, edge.auth);
  const credential = found instanceof Promise ? await found : found;
  admission.identified(credential.org_id, credential);
  permit('gateway:invoke', credential, asked, edge.auth);
  answering.open.org_id = credential.org_id;
  checkPinnedVersion(req.headers[VERSION_HEADER]);
  if (routes.standardOf(path.api).length === 0) throw notConfigured(path);
  checkQuery(path.path, req.headers);
  const waits = admission.validated();
  if (waits !== null) await waits;
  if (path.operation === 'models') await passModels(req, res, path, answering, deps);
  else if (path.operation === 'count_tokens') await passCount(req, res, { ...path, credential }, answering, deps);
  else await passCall(req, res, { ...path, operation: path.operation, credential }, answering, deps);
}

interface ModelCall extends GatewayPath {
  operation: Operation;
  credential: OrgCredential;
}

/** Reads a call of a model, asks the upstreams and passes the answer on. */
async function passCall(
  req: IncomingMessage,
  res: ServerResponse,
  path: ModelCall,
  answering: Answering,
  deps: Serving,
): Promise<void> {
  const { operation, credential } = path;
  const { org_id } = credential;
  const labels = labelsOf(req.headers);
  const idHeaders = ['X-Service-Trace-Id', labels.trace_id, 'X-Service-Span-Id', labels.span_id];
  const at = answering.headers.push(...idHeaders) - idHeaders.length;
  const read = readCall(operation, labels, await bodyOf(req, answering, deps));
  const given =
    operation === 'messages' ? { ...read, labels: labelsOfMessages(labels, req.headers, read.request) } : read;
  answering.headers[at + 1] = given.labels.trace_id;
  const judges = deps.judgesOf(org_id);
  const { call, notes, blocked } = guardPrompt(judges, given);
  const responseGuards = guardsOf(judges, 'response', call);
  const targets = targetsOf(req, path, call.model, deps);
  const isUsage =
    deps.captureOf(org_id) === 'usage' || (credential.kind === 'api_key' && credential.capture === 'usage');
  const asked = cacheKeyOf(req.headers, { org_id, path: path.path, call, targets });
  // An answer in the cache is stored content, and no guard of today has seen it.
  const cacheKey = isUsage || responseGuards.length > 0 || blocked !== null ? null : asked;
  const hit = cacheKey === null ? null : await deps.cache.find(cacheKey);
  if (asked !== null) answering.headers.push('X-Service-Cache', hit === null ? 'miss' : 'hit');
  const invocation: Invocation = {
    org_id,
    capture: isUsage ? 'usage' : 'full',
    cacheKey,
    guards: responseGuards,
    notes,
    call,
    targets,
    path: path.path,
    req,
    res,
    answering,
  };
  if (blocked !== null) refuseBlocked(invocation, blocked, deps.invoking);
  else if (hit === null) await invoke(invocation, deps.invoking);
  else {
    // What limits the key limits answers of the cache as well.
    const { estimates, now } = deps.invoking;
    await askKey(credential, answering, () => estimates.of(org_id, call, now(), deps.partitions).call);
    answerFromCache(invocation, hit, deps.invoking);
  }
}

/**
 * Asks what limits a key for a request that is not recorded: an answer of the cache, or tokens to be
 * counted.
 * @throws ApiError forbidden, rate_limited, payment_required
 */
async function askKey(credential: OrgCredential, { admission }: Answering, callOf: () => EstimatedCall): Promise<void> {
  if (credential.kind !== 'api_key' || credential.limits === undefined) return;
  const waits = admission.committing(() => [callOf()]);
  if (waits !== null) await waits;
  admission.release('committing');
}

function bodyOf(req: IncomingMessage, { admission }: Answering, { edge }: Serving): Promise<Buffer> {
  checkJsonType(req.headers['content-type']);
  return readBody(req, { bytesMax: edge.bodyBytesMax, grow: admission.reserveBytes }).catch(asInvalid);
}

function asInvalid(error: unknown): never {
  if (error instanceof MalformedBody) throw new ApiError('invalid_request', `body: ${error.message}`, { cause: error });
  throw error;
}

function targetsOf(
  req: IncomingMessage,
  path: GatewayPath,
  model: string,
  { routes }: Serving,
): readonly GatewayTarget[] {
  const targets = routes.targetsOf(model, path.api);
  if (targets.length === 0) throw notConfigured(path);
  return usableTargets(req.headers, targets);
}

function notConfigured({ api }: GatewayPath): ApiError {
  const [setting, where] =
    api === 'openai' ? ['SERVICE_LLM_BASE_URL', ''] : ['SERVICE_ANTHROPIC_BASE_URL', ' with "api": "anthropic"'];
  return new ApiError(
    'upstream_not_configured',
    `No upstream is configured for this model: set ${setting}, or SERVICE_GATEWAY_ROUTES${where}.`,
  );
}

/** Passes the upstream's list of models on. */
async function passModels(
  req: IncomingMessage,
  res: ServerResponse,
  path: GatewayPath,
  answering: Answering,
  { routes }: Serving,
): Promise<void> {
  checkModelPath(path.path);
  const [target] = usableTargets(req.headers, routes.standardOf(path.api));
  if (target === undefined) throw notConfigured(path);
  const headers = headersFor(req.headers, target);
  await passUnrecorded(res, target, { method: 'GET', path: path.path, headers, body: null }, answering);
}

/** Passes a request on that counts the tokens of a prompt. */
async function passCount(
  req: IncomingMessage,
  res: ServerResponse,
  path: GatewayPath & { credential: OrgCredential },
  answering: Answering,
  deps: Serving,
): Promise<void> {
  const call = readCall('messages', labelsOf(req.headers), await bodyOf(req, answering, deps));
  const { estimates, now } = deps.invoking;
  await askKey(path.credential, answering, () =>
    estimates.ofNothing(path.credential.org_id, call, now(), deps.partitions),
  );
  const [target] = targetsOf(req, path, call.model, deps);
  if (target === undefined) throw notConfigured(path);
  const headers = headersFor(req.headers, target);
  await passUnrecorded(
    res,
    target,
    { method: 'POST', path: path.path, headers, body: bodyFor(call, target) },
    answering,
  );
}

/** Passes a request on that calls no model, so nothing is recorded. */
async function passUnrecorded(
  res: ServerResponse,
  target: GatewayTarget,
  asked: Asked,
  { request_id, headers }: Answering,
): Promise<void> {
  const begun = await ask(target, asked, res);
  if (begun.failed === 'gone') return;
  if (begun.answer === null)
    throw new ApiError('upstream_unavailable', 'The upstream cannot be reached.', { cause: begun.cause });
  const { answer } = begun;
  const { ending, begun: sent } = await relay(answer, res, {
    timeout_ms: target.timeout_ms,
    streamed: false,
    begin: (length) => {
      const passed = answerHeaders(answer.rawHeaders, length !== null);
      if (length !== null) passed.push('Content-Length', String(length));
      res.writeHead(answer.status, [...passed, ...headers, REQUEST_ID_HEADER, request_id]);
    },
    take: (chunk) => chunk,
    rest: () => Buffer.alloc(0),
    decide: null,
  });
  if (ending === 'complete' || ending === 'gone') return;
  if (!sent) throw new ApiError('upstream_unavailable', 'The upstream broke off the connection.');
  res.destroy();
}
