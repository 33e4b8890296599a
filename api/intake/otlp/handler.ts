// Serves the OTLP paths as a plain function of (req, res), ahead of Express like ingest. Takes POST
// of an export of traces, logs or metrics in protobuf or JSON; responds with 200 once JetStream has
// stored every record that can be accepted, with the number of rejected ones, or with an error.
// Never waits for ClickHouse.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody } from '../../http/body.ts';
import { ApiError, toApiError } from '../../http/errors.ts';
import type { EdgeDeps } from '../../http/mount.ts';
import { newRequestId } from '../../http/request_id.ts';
import { discardBody } from '../../http/unread_body.ts';
import { type AcceptDeps, type Accepted, acceptExport } from './accept.ts';
import { sendOtlpError, sendAccepted, statusOf } from './answer.ts';
import type { Encoding } from './events.ts';
import type { OtlpPath } from './signals.ts';

export interface OtlpDeps extends Omit<AcceptDeps, 'edge'> {
  edge: EdgeDeps;
  /** Called after every response; events and bytes are 0 unless the request was accepted now. */
  observeIngest: (format: 'otlp', status: number, events: number, bytes: number) => void;
  /** Called for every request that is answered with an error; `org_id` is empty without a valid credential. */
  refused: (
    req: Pick<IncomingMessage, 'headers' | 'url'>,
    orgs: { org_id: string; named: string | undefined },
    error: Pick<ApiError, 'code' | 'detail' | 'status'>,
  ) => void;
}

/** Status in the metrics of a request whose client has disconnected; nothing is sent. */
const CLIENT_GONE = 499;

/** Returns a function that serves exports. It always sends a response. */
export function createOtlpHandler(deps: OtlpDeps): (req: IncomingMessage, res: ServerResponse, at: OtlpPath) => void {
  return (req, res, at) => {
    const began = performance.now();
    const accepted = { events: 0, bytes: 0, org_id: '' };
    void serve(req, res, at, accepted, deps).then((status) => {
      deps.observeIngest('otlp', status, accepted.events, accepted.bytes);
      deps.edge.observe(at.path, req.method ?? '', status, (performance.now() - began) / 1000);
    });
  };
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
  { path, signal }: OtlpPath,
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
    const arrived = {
      signal,
      headers: req.headers,
      encoding,
      setHeader: (name: string, value: string) => void res.setHeader(name, value),
      readBody: readBody.bind(null, req),
    };
    const read = await acceptExport(arrived, accepted, deps);
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
