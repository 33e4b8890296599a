// Serves the ingest endpoints as a plain function of (req, res), ahead of Express, because this
// path has to be fast. Takes POST /orgs/{org_id}/ingest/{format}; responds with 200 and ids once
// JetStream has stored every event, or with an error of the contract. Never waits for ClickHouse;
// never responds later than a second after the body has arrived.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseQuery, type ParsedUrlQuery } from 'node:querystring';
import { z } from 'zod';
import { type IngestFormat, isIngestFormat } from '../../../schemas/formats/formats.ts';
import { authenticateOrg, authenticateQueryKey, hasCredentialHeader, permit } from '../../http/auth.ts';
import { isBackfill } from '../../http/backfill.ts';
import { checkJsonType, MalformedBody, parseJson, readBody } from '../../http/body.ts';
import { tenantOfOrg } from '../../../ops/platform/tenant_token.ts';
import type { OrgCredential } from '../../http/credential.ts';
import { deprecationHeaders } from '../../http/deprecation.ts';
import { envelope, sendError, sendJson } from '../../http/envelope.ts';
import { ApiError, toApiError } from '../../http/errors.ts';
import { idempotencyKey, type StoredAnswer } from '../../http/idempotency.ts';
import type { EdgeDeps } from '../../http/mount.ts';
import { checkQueryNames } from '../../http/query_params.ts';
import { newRequestId } from '../../http/request_id.ts';
import { discardBody } from '../../http/unread_body.ts';
import { checkPinnedVersion, VERSION_HEADER } from '../../http/version.ts';
import type { Admission } from '../../admission/admission.ts';
import type { AdmissionRequest } from '../../admission/admission_request.ts';
import { INGEST_DOCS } from './docs.ts';
import { answerData, readEvents } from './events.ts';
import type { IngestClaim, IngestOnce, IngestOutcome } from './once.ts';
import { COMMIT_MS_MAX, type Publisher } from './publisher.ts';
import { storeEvents } from './store.ts';

export interface IngestDeps {
  edge: EdgeDeps;
  admission: Pick<Admission, 'begin'>;
  publisher: Publisher;
  once: IngestOnce;
  partitions: number;
  /** Called after every response; events and bytes are 0 unless the request was accepted now. */
  observeIngest: (format: IngestFormat | 'otlp' | 'unknown', status: number, events: number, bytes: number) => void;
  /** Called for every request that is answered with an error; `org_id` is empty without a valid credential. */
  refused: (
    req: Pick<IncomingMessage, 'headers' | 'url'>,
    orgs: { org_id: string; named: string | undefined },
    error: Pick<ApiError, 'code' | 'detail' | 'status'>,
  ) => void;
}

/** The parts of an ingest path. */
export interface IngestPath {
  org_id: string;
  format: string;
}

/**
 * Minimum time for storing the outcome of an Idempotency-Key, however late the events were
 * confirmed.
 */
const KEEP_MS_MIN = 90;

const formatOf = ({ path }: { path: string }): string => path.slice(path.lastIndexOf('/') + 1);
/** Deprecation headers by format. */
const ANNOUNCED = new Map(INGEST_DOCS.map((doc) => [formatOf(doc), deprecationHeaders(doc)]));
/** Query schemas by format. */
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

/** Returns the query of a URL; null without one. */
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
  /** Organization of the credential; empty before it is known. */
  org_id: string;
}

/** Returns a function that serves ingest requests. It always sends a response. */
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
      org_id: '',
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

/** Status in the metrics of a request whose client has disconnected; nothing is sent. */
const CLIENT_GONE = 499;

/** Serves a request. Resolves with the status that was sent. */
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
    deps.refused(req, { org_id: attempt.org_id, named: attempt.path.org_id }, error);
    await discardBody(req, res, error.status);
    sendError(res, error, request_id);
    return error.status;
  }
}

async function ingest(attempt: Attempt, deps: IngestDeps): Promise<StoredAnswer & { replayed: boolean }> {
  const { req, path } = attempt;
  const format = isIngestFormat(path.format) ? path.format : null;
  if (format !== null && req.method !== 'POST')
    throw new ApiError('method_not_allowed', 'This path accepts POST.', { headers: { Allow: 'POST' } });
  const asked = { method: 'POST', headers: req.headers, pathOrg: path.org_id };
  const queryKey = format === 'app' ? attempt.query?.['api_key'] : undefined;
  const credential =
    queryKey === undefined ? await authenticateOrg(asked, deps.edge.auth) : keyInQuery(queryKey, req, deps);
  attempt.org_id = credential.org_id;
  const admission = deps.admission.begin(format === 'app' ? 'app' : 'ingest', (name, value) => {
    attempt.res.setHeader(name, value);
  });
  try {
    const backfill = isBackfill(req.headers);
    admission.identified(credential.org_id, credential, { backfill });
    permit(backfill ? 'ingest:backfill' : 'ingest:write', credential, asked, deps.edge.auth);
    return await accept(attempt, { format, credential, admission }, deps);
  } catch (error) {
    admission.failed();
    throw error;
  } finally {
    admission.release();
  }
}

/**
 * Authenticates by the key in the query.
 * @throws ApiError unauthenticated, forbidden, invalid_request
 */
function keyInQuery(given: string | string[], req: IncomingMessage, deps: IngestDeps): OrgCredential {
  if (typeof given !== 'string') throw new ApiError('invalid_request', 'api_key: may be given only once');
  if (hasCredentialHeader(req.headers))
    throw new ApiError('invalid_request', 'api_key: may not be given together with a credential in a header');
  return authenticateQueryKey(given, deps.edge.auth);
}

interface Accepted {
  format: IngestFormat | null;
  credential: OrgCredential;
  admission: AdmissionRequest;
}

async function accept(
  attempt: Attempt,
  { format, credential, admission }: Accepted,
  deps: IngestDeps,
): Promise<StoredAnswer & { replayed: boolean }> {
  const { req, path } = attempt;
  checkPinnedVersion(req.headers[VERSION_HEADER]);
  if (format === null)
    throw new ApiError('decode_failed', `"${path.format.slice(0, 64)}" is not a known source_format.`);
  for (const [name, value] of ANNOUNCED.get(format) ?? []) attempt.res.setHeader(name, value);
  if (attempt.query !== null) checkQueryNames(QUERIES.get(format) ?? NO_QUERY, attempt.query);
  const key = idempotencyKey(req.headers['idempotency-key']);
  checkJsonType(req.headers['content-type'], format === 'app');
  const waits = admission.validated();
  const waited = waits === null ? 0 : await waits;
  return await admitted({ attempt, format, org_id: credential.org_id, key, admission, waited }, deps);
}

interface Admitted {
  attempt: Attempt;
  format: IngestFormat;
  org_id: string;
  key: string | null;
  admission: AdmissionRequest;
  /** Milliseconds for which the request waited while its body, which may have arrived, was not read. */
  waited: number;
}

async function admitted(request: Admitted, deps: IngestDeps): Promise<StoredAnswer & { replayed: boolean }> {
  const { attempt, format, org_id, key, admission, waited } = request;
  const { edge } = deps;
  const bounds = { bytesMax: edge.bodyBytesMax, grow: admission.reserveBytes };
  const raw = await readBody(attempt.req, bounds).catch(asDecodeFailed);
  const began = performance.now() - waited;
  const read = await admission.parsing(raw.length, () =>
    readEvents(parsed(raw), {
      format,
      org_id,
      received_at: edge.now(),
      partitions: deps.partitions,
      backfill: admission.backfill,
    }),
  );
  admission.parsed(read.events.length);
  const answerOf = ({ request_id, at }: IngestOutcome): StoredAnswer => ({
    status: 200,
    body: envelope(answerData(read), request_id, at),
  });
  let claim: IngestClaim | null = null;
  if (key !== null) {
    const begun = await deps.once.begin({
      tenant: tenantOfOrg(org_id),
      endpoint: `POST ingest/${format}`,
      key,
      body: raw,
    });
    if ('replay' in begun) return { ...answerOf(begun.replay), replayed: true };
    claim = begun.claim;
  }
  const spent = () => performance.now() - began;
  try {
    await storeEvents(deps.publisher, admission, read.events, spent());
  } catch (error) {
    await claim?.release();
    throw error;
  }
  const mine: IngestOutcome = { request_id: attempt.request_id, at: edge.now() };
  const holds = (await claim?.keep(mine, Math.max(KEEP_MS_MIN, COMMIT_MS_MAX - spent()))) ?? mine;
  if (holds !== mine) return { ...answerOf(holds), replayed: true };
  attempt.events = read.events.length;
  attempt.bytes = raw.length;
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
