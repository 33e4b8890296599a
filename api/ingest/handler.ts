// The ingest endpoints as a plain function of (req, res), ahead of Express: this is the path that has to be fast.
// In: POST /orgs/{org_id}/ingest/{format}. Out: 200 with ids once JetStream has stored every event, or an error of the
// contract. Never waits for ClickHouse; never answers later than a second after the body is in.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type IngestFormat, isIngestFormat } from '../../schemas/formats/formats.ts';
import { authorizeOrg } from '../http/auth.ts';
import { checkJsonType, drain, MalformedBody, parseJson, readBody } from '../http/body.ts';
import type { OrgCredential } from '../http/credential.ts';
import { envelope, sendError, sendJson } from '../http/envelope.ts';
import { ApiError, toApiError } from '../http/errors.ts';
import { idempotencyKey, type IdempotencyLock, type KeptAnswer } from '../http/idempotency.ts';
import type { EdgeDeps } from '../http/mount.ts';
import { newRequestId } from '../http/request_id.ts';
import { checkPinnedVersion, VERSION_HEADER } from '../http/version.ts';
import type { Admission, Hold } from './admission.ts';
import { answerData, readEvents } from './events.ts';
import type { Publisher } from './publisher.ts';

export interface IngestDeps {
  edge: EdgeDeps;
  admission: Admission;
  publisher: Publisher;
  partitions: number;
  /** Told of every answer: events and bytes are 0 unless they were accepted now. */
  observeIngest: (format: IngestFormat | 'unknown', status: number, events: number, bytes: number) => void;
}

/** An ingest path, split. */
export interface IngestPath {
  org_id: string;
  format: string;
}

const INGEST_PATH = /^\/orgs\/([^/?#]+)\/ingest\/([^?#]+)/;

/** Splits the URL of an ingest request; null for any other. */
export function ingestPathOf(url: string): IngestPath | null {
  const match = url.startsWith('/orgs/') ? INGEST_PATH.exec(url) : null;
  if (match === null) return null;
  const [, org = '', rest = ''] = match;
  try {
    return { org_id: org.includes('%') ? decodeURIComponent(org) : org, format: rest.endsWith('/') ? rest.slice(0, -1) : rest };
  } catch {
    return null;
  }
}

interface Attempt {
  req: IncomingMessage;
  res: ServerResponse;
  request_id: string;
  path: IngestPath;
  events: number;
  bytes: number;
}

/** Serves ingest requests; the answer is always sent, whatever happens. */
export function createIngestHandler(deps: IngestDeps): (req: IncomingMessage, res: ServerResponse, path: IngestPath) => void {
  return (req, res, path) => {
    const attempt: Attempt = { req, res, request_id: newRequestId(), path, events: 0, bytes: 0 };
    const began = performance.now();
    void serve(attempt, deps).then((status) => {
      const format = isIngestFormat(path.format) ? path.format : 'unknown';
      deps.observeIngest(format, status, attempt.events, attempt.bytes);
      deps.edge.observe(`/orgs/{org_id}/ingest/${format}`, req.method ?? '', status, (performance.now() - began) / 1000);
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
    if (error.status >= 500) deps.edge.log.error({ request_id, code: error.code, err: error.cause ?? error }, 'ingest failed');
    sendError(res, error, request_id);
    drain(req, res);
    return error.status;
  }
}

async function ingest(attempt: Attempt, deps: IngestDeps): Promise<KeptAnswer & { replayed: boolean }> {
  const { req, path } = attempt;
  const format = isIngestFormat(path.format) ? path.format : null;
  if (format !== null && req.method !== 'POST')
    throw new ApiError('method_not_allowed', 'This path takes POST.', { headers: { Allow: 'POST' } });
  const credential = authorizeOrg('ingest:write', req.headers, path.org_id, deps.edge.auth);
  checkPinnedVersion(req.headers[VERSION_HEADER]);
  if (format === null) throw new ApiError('decode_failed', `"${path.format.slice(0, 64)}" is no known source_format.`);
  const key = idempotencyKey(req.headers['idempotency-key']);
  checkJsonType(req.headers['content-type']);
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
  const read = readEvents(parsed(raw), { format, org_id: credential.org_id, received_at: edge.now(), partitions: deps.partitions });
  const refusal = hold.admit(read.events.length);
  if (refusal !== null) throw refusal;
  let lock: IdempotencyLock | null = null;
  if (key !== null) {
    const begun = await edge.idempotency.begin({ org_id: credential.org_id, endpoint: `POST ingest/${format}`, key, body: raw });
    if ('replay' in begun) return { ...begun.replay, replayed: true };
    lock = begun.lock;
  }
  try {
    await deps.publisher.publish(read.events, performance.now() - began);
  } catch (error) {
    await lock?.release();
    throw error;
  }
  const answer = { status: 200, body: envelope(answerData(read), request.request_id, edge.now()) };
  await lock?.keep(answer);
  request.attempt.events = read.events.length;
  request.attempt.bytes = raw.length;
  return { ...answer, replayed: false };
}

function parsed(raw: Buffer): unknown {
  try {
    return parseJson(raw);
  } catch (error) {
    return asDecodeFailed(error);
  }
}

function asDecodeFailed(error: unknown): never {
  throw error instanceof MalformedBody ? new ApiError('decode_failed', `body: ${error.message}`, { cause: error }) : error;
}
