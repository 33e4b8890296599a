// Serves the paths of other services on which their clients send telemetry, as plain functions of
// (req, res) ahead of Express like ingest. Takes a request through admission, reads its body and
// hands it to the protocol of the path, which stores events and says what to answer. Guarantees:
// the checks, bounds and metrics are those of OTLP, and every request gets an answer.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { zstdDecompress } from 'node:zlib';
import { promisify } from 'node:util';
import type { Admission } from '../../admission/admission.ts';
import type { AdmissionRequest } from '../../admission/admission_request.ts';
import { authenticateOrg, permit } from '../../http/auth.ts';
import { isBackfill } from '../../http/backfill.ts';
import { MalformedBody, readBody } from '../../http/body.ts';
import type { OrgCredential } from '../../http/credential.ts';
import { sendError, sendJson } from '../../http/envelope.ts';
import { ApiError, toApiError } from '../../http/errors.ts';
import type { EdgeDeps } from '../../http/mount.ts';
import { newRequestId } from '../../http/request_id.ts';
import { discardBody } from '../../http/unread_body.ts';
import type { SpanEvent } from './events.ts';

const unzstd = promisify(zstdDecompress);

export interface CompatDeps {
  edge: EdgeDeps;
  admission: Pick<Admission, 'begin'>;
  /**
   * Stores events as ingest does: within the budget, and acknowledged by the log.
   * @throws ApiError
   */
  store: (admission: AdmissionRequest, events: readonly SpanEvent[], spentMs: number) => Promise<void>;
  /** Called after every response; events and bytes are 0 unless the request was accepted now. */
  observeIngest: (format: 'otlp', status: number, events: number, bytes: number) => void;
  /** Called for every request that is answered with an error; `org_id` is empty without a valid credential. */
  refused: (
    req: Pick<IncomingMessage, 'headers' | 'url'>,
    orgs: { org_id: string; named: string | undefined },
    error: Pick<ApiError, 'code' | 'detail' | 'status'>,
  ) => void;
}

/** A request as a protocol gets it. */
export interface CompatRequest {
  credential: OrgCredential;
  /** Last part of the path, where the path of the protocol has one. */
  id: string;
  contentType: string;
  body: Buffer;
  /** Milliseconds since the epoch. */
  received_at: number;
  /** True for events of the past. */
  backfill: boolean;
  /** Reserves bytes that are about to be kept in memory. */
  grow: (bytes: number) => ApiError | null;
}

/** What a protocol makes of a body. */
export interface CompatReading {
  events: readonly SpanEvent[];
  /** Number of items that the body holds, which the bound of items in flight counts. */
  items: number;
  /** Does what remains once the events are stored, and returns the answer. */
  finish: () => Promise<CompatAnswer> | CompatAnswer;
  /** Events that the budget must admit although they are stored later. */
  later?: readonly SpanEvent[];
}

export interface CompatAnswer {
  status: number;
  json: unknown;
}

export interface Protocol {
  /** Pattern of the path, for metrics and documentation. */
  route: string;
  method: 'POST' | 'PATCH';
  /** True where events of the past are accepted, which are stored at once. */
  takesBackfill?: boolean;
  /** @throws ApiError, MalformedBody */
  read: (request: CompatRequest) => CompatReading;
}

/** Status in the metrics of a request whose client has disconnected; nothing is sent. */
const CLIENT_GONE = 499;

/** Path of LangSmith whose last part is the id of a run. */
const ONE_RUN = /^\/langsmith\/runs\/([^/?#]{1,200})$/;

/**
 * Returns a function that serves the requests of the protocols. It returns false for a request that
 * is none of theirs; otherwise it always sends a response.
 */
export function createCompatDispatcher(
  deps: CompatDeps,
  protocols: readonly Protocol[],
): (req: IncomingMessage, res: ServerResponse) => boolean {
  const byRoute = new Map(protocols.map((protocol) => [protocol.route, protocol]));
  return (req, res) => {
    const path = (req.url ?? '').split(/[?#]/, 1)[0] ?? '';
    const one = byRoute.has(path) ? null : ONE_RUN.exec(path);
    const protocol = byRoute.get(one === null ? path : '/langsmith/runs/{id}');
    if (protocol === undefined || (one !== null && req.method !== protocol.method)) return false;
    const began = performance.now();
    const accepted = { events: 0, bytes: 0, org_id: '' };
    void serve({ req, res, id: one?.[1] ?? '', protocol, accepted, deps }).then((status) => {
      deps.observeIngest('otlp', status, accepted.events, accepted.bytes);
      deps.edge.observe(protocol.route, req.method ?? '', status, (performance.now() - began) / 1000);
    });
    return true;
  };
}

interface Serving {
  req: IncomingMessage;
  res: ServerResponse;
  id: string;
  protocol: Protocol;
  /** Amounts accepted, for the metrics, and the organization of the credential; empty before it is known. */
  accepted: { events: number; bytes: number; org_id: string };
  deps: CompatDeps;
}

async function serve(serving: Serving): Promise<number> {
  const { req, res, accepted, deps } = serving;
  const request_id = newRequestId();
  try {
    const { method } = serving.protocol;
    if (req.method !== method)
      throw new ApiError('method_not_allowed', `This path accepts ${method}.`, { headers: { Allow: method } });
    const { status, json } = await accept(serving);
    sendJson(res, status, request_id, JSON.stringify(json));
    return status;
  } catch (thrown) {
    if (req.destroyed && !req.complete) return CLIENT_GONE;
    const error = toApiError(
      thrown instanceof MalformedBody ? new ApiError('invalid_request', `body: ${thrown.message}`) : thrown,
      () => null,
    );
    if (error.status >= 500)
      deps.edge.log.error({ request_id, code: error.code, err: error.cause ?? error }, 'compatible ingest failed');
    deps.refused(req, { org_id: accepted.org_id, named: undefined }, error);
    await discardBody(req, res, error.status);
    sendError(res, error, request_id);
    return error.status;
  }
}

async function accept({ req, res, id, protocol, accepted, deps }: Serving): Promise<CompatAnswer> {
  const { edge } = deps;
  const asked = { method: protocol.method, headers: req.headers, pathOrg: undefined };
  const credential = await authenticateOrg(asked, edge.auth);
  accepted.org_id = credential.org_id;
  const admission = deps.admission.begin('otlp', (name, value) => {
    res.setHeader(name, value);
  });
  try {
    const backfill = isBackfill(req.headers);
    admission.identified(credential.org_id, credential, { backfill });
    permit(backfill ? 'ingest:backfill' : 'ingest:write', credential, asked, edge.auth);
    if (backfill && protocol.takesBackfill !== true)
      throw new ApiError('invalid_request', 'X-Service-Backfill: this path takes no events of the past. Use OTLP.');
    const waited = (await admission.validated()) ?? 0;
    const body = await bodyOf(req, edge.bodyBytesMax, admission.reserveBytes);
    const began = performance.now() - waited;
    const reading = await admission.parsing(body.length, () =>
      protocol.read({
        credential,
        id,
        contentType: req.headers['content-type'] ?? '',
        body,
        received_at: edge.now(),
        backfill,
        grow: admission.reserveBytes,
      }),
    );
    admission.parsed(reading.items);
    if (reading.events.length > 0) await deps.store(admission, reading.events, performance.now() - began);
    if (reading.later !== undefined && reading.later.length > 0)
      await preflight(deps, credential.org_id, reading.later);
    const answer = await reading.finish();
    accepted.events = reading.items;
    accepted.bytes = body.length;
    return answer;
  } finally {
    admission.release();
  }
}

/** Rejects events that the budget would not admit. Stores and reserves nothing. @throws ApiError */
async function preflight(deps: CompatDeps, org_id: string, events: readonly SpanEvent[]): Promise<void> {
  const request = deps.admission.begin('record_preflight');
  try {
    request.identified(org_id);
    await request.committing(() => events);
  } finally {
    request.release();
  }
}

/** Reads a body, also one that is compressed with zstd, which some clients of LangSmith send. */
async function bodyOf(req: IncomingMessage, bytesMax: number, grow: CompatRequest['grow']): Promise<Buffer> {
  if (req.headers['content-encoding']?.trim().toLowerCase() !== 'zstd') return readBody(req, { bytesMax, grow });
  delete req.headers['content-encoding'];
  const packed = await readBody(req, { bytesMax, grow });
  let body: Buffer;
  try {
    body = await unzstd(packed, { maxOutputLength: bytesMax });
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE')
      throw new ApiError('payload_too_large', `The body is larger than ${bytesMax} bytes.`);
    throw new MalformedBody('the body is not valid zstd data', { cause });
  }
  const refusal = grow(body.length);
  if (refusal !== null) throw refusal;
  return body;
}
