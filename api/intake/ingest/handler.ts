// The ingest endpoints as a plain function of (req, res), ahead of Express: this is the path that has to be fast.
// In: POST /orgs/{org_id}/ingest/{format}. Out: 200 with ids once JetStream has stored every event, or an error of the
// contract. Never waits for ClickHouse; never answers later than a second after the body is in.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseQuery, type ParsedUrlQuery } from 'node:querystring';
import { z } from 'zod';
import { type IngestFormat, isIngestFormat } from '../../../schemas/formats/formats.ts';
import { authenticateOrg, authenticateQueryKey, hasCredentialHeader, permit } from '../../http/auth.ts';
import { checkJsonType, MalformedBody, parseJson, readBody } from '../../http/body.ts';
import { tenantOfOrg } from '../../../ops/platform/tenant_token.ts';
import type { OrgCredential } from '../../http/credential.ts';
import { deprecationHeaders } from '../../http/deprecation.ts';
import { envelope, sendError, sendJson } from '../../http/envelope.ts';
import { ApiError, toApiError } from '../../http/errors.ts';
import { idempotencyKey, type KeptAnswer } from '../../http/idempotency.ts';
import type { EdgeDeps } from '../../http/mount.ts';
import { checkQueryNames } from '../../http/query_params.ts';
import { newRequestId } from '../../http/request_id.ts';
import { discardBody } from '../../http/unread_body.ts';
import { checkPinnedVersion, VERSION_HEADER } from '../../http/version.ts';
import type { Admission, BudgetCheck, Hold } from '../../admission/in_flight.ts';
import { INGEST_DOCS } from './docs.ts';
import { answerData, readEvents } from './events.ts';
import type { IngestClaim, IngestOnce, KeptIngest } from './once.ts';
import { COMMIT_MS_MAX, type Publisher } from './publisher.ts';
import { storeEvents } from './store.ts';

export interface IngestDeps {
  edge: EdgeDeps;
  admission: Admission;
  budgets: BudgetCheck;
  publisher: Publisher;
  /** See StoreDeps. */
  disk: { readonly low: boolean };
  /** See StoreDeps. */
  isDeleted: (org_id: string) => boolean;
  once: IngestOnce;
  partitions: number;
  /** Told of every answer: events and bytes are 0 unless they were accepted now. */
  observeIngest: (format: IngestFormat | 'otlp' | 'unknown', status: number, events: number, bytes: number) => void;
}

/** An ingest path, split. */
export interface IngestPath {
  org_id: string;
  format: string;
}

/** However late the events were confirmed, the outcome of a key gets this long to be. */
const KEEP_MS_MIN = 90;

const formatOf = ({ path }: { path: string }): string => path.slice(path.lastIndexOf('/') + 1);
/** Headers of formats that will lose something. */
const ANNOUNCED = new Map(INGEST_DOCS.map((doc) => [formatOf(doc), deprecationHeaders(doc)]));
/** What the query of each format may hold. */
const QUERIES = new Map(INGEST_DOCS.map((doc) => [formatOf(doc), doc.query]));
const NO_QUERY = z.object({});

const INGEST_PATH = /^\/orgs\/([^/?#]+)\/ingest\/([^?#]+)/;

/** Splits the URL of an ingest request; null for any other. */
export function ingestPathOf(url: string): IngestPath | null {
  const match = url.startsWith('/orgs/') ? INGEST_PATH.exec(url) : null;
  if (match === null) return null;
  const [, org = '', rest = ''] = match;
  try {
    return {
      org_id: org.includes('%') ? decodeURIComponent(org) : org,
      format: rest.endsWith('/') ? rest.slice(0, -1) : rest,
    };
  } catch {
    return null;
  }
}

/** The query of a URL, null without one. */
function queryIn(url: string): ParsedUrlQuery | null {
  const at = url.indexOf('?');
  return at < 0 ? null : parseQuery(url.slice(at + 1));
}

interface Attempt {
  req: IncomingMessage;
  res: ServerResponse;
  request_id: string;
  path: IngestPath;
  query: ParsedUrlQuery | null;
  events: number;
  bytes: number;
  /** Whether the tenant's rate has been charged for it. */
  charged: boolean;
}

/** Serves ingest requests; the answer is always sent, whatever happens. */
export function createIngestHandler(
  deps: IngestDeps,
): (req: IncomingMessage, res: ServerResponse, path: IngestPath) => void {
  return (req, res, path) => {
    const attempt: Attempt = {
      req,
      res,
      request_id: newRequestId(),
      path,
      query: queryIn(req.url ?? ''),
      events: 0,
      bytes: 0,
      charged: false,
    };
    const began = performance.now();
    void serve(attempt, deps).then((status) => {
      const format = isIngestFormat(path.format) ? path.format : 'unknown';
      deps.observeIngest(format, status, attempt.events, attempt.bytes);
      deps.edge.observe(
        `/orgs/{org_id}/ingest/${format}`,
        req.method ?? '',
        status,
        (performance.now() - began) / 1000,
      );
    });
  };
}

/** In the metrics, the status of a request whose sender went away; nothing is sent. */
const CLIENT_GONE = 499;

/** The status that was sent. */
async function serve(attempt: Attempt, deps: IngestDeps): Promise<number> {
  const { req, res, request_id } = attempt;
  try {
    const answer = await ingest(attempt, deps);
    sendJson(res, answer.status, request_id, answer.body, answer.replayed ? { 'Idempotency-Replayed': 'true' } : {});
    return answer.status;
  } catch (thrown) {
    if (req.destroyed && !req.complete) return CLIENT_GONE;
    const error = toApiError(thrown, () => null);
    if (error.status >= 500)
      deps.edge.log.error({ request_id, code: error.code, err: error.cause ?? error }, 'ingest failed');
    await discardBody(req, res, error.status);
    sendError(res, error, request_id);
    return error.status;
  }
}

async function ingest(attempt: Attempt, deps: IngestDeps): Promise<KeptAnswer & { replayed: boolean }> {
  const { req, path } = attempt;
  const format = isIngestFormat(path.format) ? path.format : null;
  if (format !== null && req.method !== 'POST')
    throw new ApiError('method_not_allowed', 'This path takes POST.', { headers: { Allow: 'POST' } });
  const asked = { method: 'POST', headers: req.headers, pathOrg: path.org_id };
  const queryKey = format === 'app' ? attempt.query?.['api_key'] : undefined;
  const credential =
    queryKey === undefined ? await authenticateOrg(asked, deps.edge.auth) : keyInQuery(queryKey, req, deps);
  const taken = () => {
    permit('ingest:write', credential, asked, deps.edge.auth);
    return accept(attempt, { format, credential }, deps);
  };
  if (format !== 'app') {
    charge(attempt, deps, { kind: 'ingest', tenant: credential.org_id, cost: 1 });
    return await taken();
  }
  try {
    return await taken();
  } catch (error) {
    // Refused before its events could be counted: it counts as one, or bad requests would be free.
    if (!attempt.charged) charge(attempt, deps, { kind: 'app', tenant: credential.org_id, cost: 1 });
    throw error;
  }
}

/** @throws ApiError unauthenticated, forbidden, invalid_request */
function keyInQuery(given: string | string[], req: IncomingMessage, deps: IngestDeps): OrgCredential {
  if (typeof given !== 'string') throw new ApiError('invalid_request', 'api_key: may be given only once');
  if (hasCredentialHeader(req.headers))
    throw new ApiError('invalid_request', 'api_key: may not be given beside a credential in a header');
  return authenticateQueryKey(given, deps.edge.auth);
}

const RATE_DETAILS = {
  ingest: 'The tenant sends too many ingest requests. Send it again after Retry-After seconds.',
  app: 'The tenant sends too many app events. Send them again after Retry-After seconds.',
};

/** Takes from the tenant's rate and shows what is left of it on the answer. @throws ApiError rate_limited */
function charge(
  attempt: Attempt,
  deps: IngestDeps,
  { kind, tenant, cost }: { kind: 'ingest' | 'app'; tenant: string; cost: number },
): void {
  attempt.charged = true;
  const { allowed, headers } = deps.edge.limits.take(kind, tenant, cost);
  for (const name in headers) attempt.res.setHeader(name, headers[name] ?? '');
  if (!allowed) throw new ApiError('rate_limited', RATE_DETAILS[kind]);
}

async function accept(
  attempt: Attempt,
  { format, credential }: { format: IngestFormat | null; credential: OrgCredential },
  deps: IngestDeps,
): Promise<KeptAnswer & { replayed: boolean }> {
  const { req, path } = attempt;
  checkPinnedVersion(req.headers[VERSION_HEADER]);
  if (format === null) throw new ApiError('decode_failed', `"${path.format.slice(0, 64)}" is no known source_format.`);
  for (const [name, value] of ANNOUNCED.get(format) ?? []) attempt.res.setHeader(name, value);
  if (attempt.query !== null) checkQueryNames(QUERIES.get(format) ?? NO_QUERY, attempt.query);
  const key = idempotencyKey(req.headers['idempotency-key']);
  checkJsonType(req.headers['content-type'], format === 'app');
  const hold = deps.admission.open(credential);
  try {
    return await admitted({ ...attempt, format, credential, key, hold, attempt }, deps);
  } finally {
    hold.release();
  }
}

interface Admitted extends Attempt {
  attempt: Attempt;
  format: IngestFormat;
  credential: OrgCredential;
  key: string | null;
  hold: Hold;
}

async function admitted(request: Admitted, deps: IngestDeps): Promise<KeptAnswer & { replayed: boolean }> {
  const { req, format, credential, key, hold } = request;
  const { edge } = deps;
  const raw = await readBody(req, { bytesMax: edge.bodyBytesMax, grow: hold.grow }).catch(asDecodeFailed);
  const began = performance.now();
  const read = await hold.inTurn(raw.length, () =>
    readEvents(parsed(raw), {
      format,
      org_id: credential.org_id,
      received_at: edge.now(),
      partitions: deps.partitions,
    }),
  );
  const refusal = hold.admit(read.events.length);
  if (refusal !== null) throw refusal;
  if (format === 'app')
    charge(request.attempt, deps, { kind: 'app', tenant: credential.org_id, cost: read.events.length });
  const answerOf = ({ request_id, at }: KeptIngest): KeptAnswer => ({
    status: 200,
    body: envelope(answerData(read), request_id, at),
  });
  let claim: IngestClaim | null = null;
  if (key !== null) {
    const begun = await deps.once.begin({
      tenant: tenantOfOrg(credential.org_id),
      endpoint: `POST ingest/${format}`,
      key,
      body: raw,
    });
    if ('replay' in begun) return { ...answerOf(begun.replay), replayed: true };
    claim = begun.claim;
  }
  const spent = () => performance.now() - began;
  try {
    await storeEvents(deps, credential.org_id, read.events, spent());
  } catch (error) {
    await claim?.release();
    throw error;
  }
  const mine: KeptIngest = { request_id: request.request_id, at: edge.now() };
  const holds = (await claim?.keep(mine, Math.max(KEEP_MS_MIN, COMMIT_MS_MAX - spent()))) ?? mine;
  if (holds !== mine) return { ...answerOf(holds), replayed: true };
  request.attempt.events = read.events.length;
  request.attempt.bytes = raw.length;
  return { ...answerOf(mine), replayed: false };
}

function parsed(raw: Buffer): unknown {
  try {
    return parseJson(raw);
  } catch (error) {
    return asDecodeFailed(error);
  }
}

function asDecodeFailed(error: unknown): never {
  throw error instanceof MalformedBody
    ? new ApiError('decode_failed', `body: ${error.message}`, { cause: error })
    : error;
}
