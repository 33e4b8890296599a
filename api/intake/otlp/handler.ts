// Serves the OTLP paths as a plain function of (req, res), ahead of Express like ingest. Takes POST
// /v1/otlp/v1/traces or /v1/traces with an export in protobuf or JSON; responds with 200 once
// JetStream has stored every span that can be accepted, with the number of rejected ones, or with
// an error. Never waits for ClickHouse.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Admission } from '../../admission/admission.ts';
import type { AdmissionRequest } from '../../admission/admission_request.ts';
import { authenticateOrg, permit } from '../../http/auth.ts';
import { checkJsonType, MalformedBody, readBody } from '../../http/body.ts';
import { ApiError, toApiError } from '../../http/errors.ts';
import type { EdgeDeps } from '../../http/mount.ts';
import { newRequestId } from '../../http/request_id.ts';
import { discardBody } from '../../http/unread_body.ts';
import { checkPinnedVersion, VERSION_HEADER } from '../../http/version.ts';
import { InvalidOtlp, sendOtlpError, sendAccepted, statusOf } from './answer.ts';
import { type Encoding, type ReadExport, readExport, type SpanEvent } from './events.ts';

export interface OtlpDeps {
  edge: EdgeDeps;
  admission: Pick<Admission, 'begin'>;
  /**
   * Stores events as ingest does: within the budget, and acknowledged by the log.
   * @throws ApiError
   */
  store: (admission: AdmissionRequest, events: readonly SpanEvent[], spentMs: number) => Promise<void>;
  partitions: number;
  /** Called after every response; events and bytes are 0 unless the request was accepted now. */
  observeIngest: (format: 'otlp', status: number, events: number, bytes: number) => void;
  /** Called for every request that is answered with an error; `org_id` is empty without a valid credential. */
  refused: (
    req: IncomingMessage,
    orgs: { org_id: string; named: string | undefined },
    error: Pick<ApiError, 'code' | 'detail' | 'status'>,
  ) => void;
}

const OTLP_PATH = /^\/v1\/(otlp\/v1\/)?traces\/?(?:[?#]|$)/;
/** Methods with which /v1/traces is the list of traces. */
const LISTS = new Set(['GET', 'HEAD']);
/** Status in the metrics of a request whose client has disconnected; nothing is sent. */
const CLIENT_GONE = 499;

/** Returns the pattern of the OTLP path of a request; null for any other request. */
export function otlpPathOf(method: string, url: string): string | null {
  const match = url.startsWith('/v1/') ? OTLP_PATH.exec(url) : null;
  if (match === null) return null;
  if (match[1] !== undefined) return '/v1/otlp/v1/traces';
  return LISTS.has(method) ? null : '/v1/traces';
}

/** Returns a function that serves exports. It always sends a response. */
export function createOtlpHandler(deps: OtlpDeps): (req: IncomingMessage, res: ServerResponse, path: string) => void {
  return (req, res, path) => {
    const began = performance.now();
    const accepted = { events: 0, bytes: 0, org_id: '' };
    void serve(req, res, path, accepted, deps).then((status) => {
      deps.observeIngest('otlp', status, accepted.events, accepted.bytes);
      deps.edge.observe(path, req.method ?? '', status, (performance.now() - began) / 1000);
    });
  };
}

/** Amounts accepted, for the metrics, and the organization of the credential; empty before it is known. */
interface Accepted {
  events: number;
  bytes: number;
  org_id: string;
}

/** Returns the encoding that a content type names; null for any other. */
function encodingOf(contentType: string | undefined): Encoding | null {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/x-protobuf') return 'protobuf';
  return type === 'application/json' ? 'json' : null;
}

/** Serves a request. Resolves with the status that was sent. */
async function serve(
  req: IncomingMessage,
  res: ServerResponse,
  path: string,
  accepted: Accepted,
  deps: OtlpDeps,
): Promise<number> {
  const request_id = newRequestId();
  const encoding = encodingOf(req.headers['content-type']);
  try {
    if (req.method !== 'POST') {
      const allow = path === '/v1/traces' ? 'GET, HEAD, POST' : 'POST';
      throw new ApiError('method_not_allowed', `This path accepts ${allow}.`, { headers: { Allow: allow } });
    }
    const read = await acceptExport(req, res, encoding, accepted, deps);
    sendAccepted(res, request_id, encoding ?? 'json', read);
    return 200;
  } catch (thrown) {
    if (req.destroyed && !req.complete) return CLIENT_GONE;
    const error = toApiError(thrown, () => null);
    if (error.status >= 500)
      deps.edge.log.error({ request_id, code: error.code, err: error.cause ?? error }, 'OTLP ingest failed');
    deps.refused(req, { org_id: accepted.org_id, named: undefined }, error);
    const status = statusOf(error);
    await discardBody(req, res, status);
    sendOtlpError(res, request_id, encoding ?? 'json', error);
    return status;
  }
}

async function acceptExport(
  req: IncomingMessage,
  res: ServerResponse,
  encoding: Encoding | null,
  accepted: Accepted,
  deps: OtlpDeps,
): Promise<ReadExport> {
  const { edge } = deps;
  const asked = { method: 'POST', headers: req.headers, pathOrg: undefined };
  const credential = await authenticateOrg(asked, edge.auth);
  accepted.org_id = credential.org_id;
  const admission = deps.admission.begin('otlp', (name, value) => {
    res.setHeader(name, value);
  });
  try {
    admission.identified(credential.org_id);
    permit('ingest:write', credential, asked, edge.auth);
    checkPinnedVersion(req.headers[VERSION_HEADER]);
    if (encoding === null)
      throw new ApiError('unsupported_media_type', 'Content-Type: must be application/x-protobuf or application/json');
    if (encoding === 'json') checkJsonType(req.headers['content-type']);
    admission.validated();
    const raw = await readBody(req, { bytesMax: edge.bodyBytesMax, grow: admission.reserveBytes });
    const began = performance.now();
    const read = await admission.parsing(raw.length, () =>
      readExport(raw, {
        encoding,
        org_id: credential.org_id,
        received_at: edge.now(),
        partitions: deps.partitions,
        grow: admission.reserveBytes,
      }),
    );
    admission.parsed(read.events.length);
    if (read.events.length > 0) await deps.store(admission, read.events, performance.now() - began);
    accepted.events = read.events.length;
    accepted.bytes = raw.length;
    return read;
  } catch (error) {
    throw error instanceof MalformedBody ? new InvalidOtlp(`body: ${error.message}`, error) : error;
  } finally {
    admission.release();
  }
}
