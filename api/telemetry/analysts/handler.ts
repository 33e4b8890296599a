// ClickHouse's HTTP protocol for analysts, at the root of the API and ahead of Express:
// authenticates, checks the query with the engine's parser, then streams the engine's answer. A
// request at / without such a login is left to the API. A query reads the data of one organization,
// is bounded in bytes and time, and ends when its caller disconnects or its analyst is deleted.
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { AnalystRecord } from '../../../schemas/records/analyst.ts';
import { ORG_SECONDS_MAX } from '../../../sql/analysts/org_views.ts';
import { MalformedBody, readBody } from '../../http/body.ts';
import { ApiError } from '../../http/errors.ts';
import type { EdgeDeps } from '../../http/mount.ts';
import { newRequestId, REQUEST_ID_HEADER } from '../../http/request_id.ts';
import { discardBody } from '../../http/unread_body.ts';
import { sendRefusal, statusOf } from './answer.ts';
import type { Refusal } from './check.ts';
import type { Confinement } from './confinement.ts';
import type { AnalystEngine } from './engine.ts';
import { type EngineRoomDeps, hasEngineRoom } from './engine_room.ts';
import { checkQuery } from './parse.ts';
import { joinQuery, loginOf, readAsked } from './request.ts';
import type { Running } from './running.ts';
import { watchForStall } from './stalled.ts';

/** Maximum bytes of a query, after decompression. */
const QUERY_BYTES_MAX = 128 * 1024;
/** Maximum time from the first byte of the request to the last byte of the answer, milliseconds. */
const QUERY_MS_MAX = ORG_SECONDS_MAX * 1000;
/** Status in the metrics of a request whose client disconnected. */
const CLIENT_GONE = 499;

/**
 * Headers of the engine's answer that are forwarded. Those with the rows and bytes read are not:
 * they count tables of all organizations.
 */
const PASSED_HEADERS = [
  'content-type',
  'content-encoding',
  'x-clickhouse-format',
  'x-clickhouse-timezone',
  'x-clickhouse-exception-code',
  'x-clickhouse-exception-tag',
];

export interface AnalystsDeps {
  edge: Pick<EdgeDeps, 'limits' | 'log' | 'observe'>;
  engine: AnalystEngine;
  confinement: Confinement;
  running: Running;
  room: EngineRoomDeps;
  /** Returns the analyst with this user name and SHA-256 of the password, or null. */
  login: (user: string, hash: string) => AnalystRecord | null;
}

/** A rejection that becomes the response. */
class Refused extends Error {
  readonly refusal: Refusal;
  readonly headers: Record<string, string>;

  constructor(refusal: Refusal, headers: Record<string, string> = {}) {
    super(refusal.message);
    this.refusal = refusal;
    this.headers = headers;
  }
}

/** Returns whether a request uses this protocol: a request at / with its login, or /ping. */
export function isForAnalysts({
  method,
  url = '',
  headers,
}: Pick<IncomingMessage, 'method' | 'url' | 'headers'>): boolean {
  if (url === '/ping') return method === 'GET';
  if (method !== 'GET' && method !== 'POST') return false;
  if (url !== '/' && !url.startsWith('/?')) return false;
  return loginOf(headers, new URLSearchParams(url.slice(2))) !== null;
}

/** Returns the handler of these requests. Every response is either sent or cut off. */
export function createAnalystsHandler(deps: AnalystsDeps): (req: IncomingMessage, res: ServerResponse) => void {
  return (req, res) => {
    const began = performance.now();
    res.setHeader(REQUEST_ID_HEADER, newRequestId());
    res.once('close', () => {
      const route = req.url === '/ping' ? '/ping' : '/';
      const status = res.writableFinished ? res.statusCode : CLIENT_GONE;
      deps.edge.observe(route, req.method ?? '', status, (performance.now() - began) / 1000);
    });
    if (req.url === '/ping') {
      res.writeHead(200, { 'Content-Type': 'text/plain; charset=UTF-8' }).end('Ok.\n');
      return;
    }
    void serve(req, res, deps);
  };
}

async function serve(req: IncomingMessage, res: ServerResponse, deps: AnalystsDeps): Promise<void> {
  const time = AbortSignal.timeout(QUERY_MS_MAX);
  const gone = new AbortController();
  res.once('close', () => {
    gone.abort();
  });
  let leave: () => void = () => undefined;
  const ends = [time, gone.signal];
  try {
    const given = new URLSearchParams((req.url ?? '').slice(2));
    const analyst = authenticate(req, given, deps);
    takeFromLimits(analyst.org_id, deps);
    const run = await deps.running.enter(analyst.org_id, analyst.user, AbortSignal.any(ends));
    if (run !== null) leave = run.leave;
    // Checked again, since the analyst may have been deleted during the wait.
    authenticate(req, given, deps);
    if (run === null) throw tooMany('Too many queries are running. Retry after the seconds in Retry-After', 1);
    ends.push(run.signal);
    await answer(req, res, { analyst, given, signal: AbortSignal.any(ends) }, deps);
  } catch (thrown) {
    // The slot is released before the rest of the body is discarded.
    leave();
    await fail(req, res, thrown, ends, deps);
  } finally {
    leave();
  }
}

/** @throws Refused */
function authenticate(req: IncomingMessage, given: URLSearchParams, { login }: AnalystsDeps): AnalystRecord {
  const { user = '', password = '' } = loginOf(req.headers, given) ?? {};
  const analyst = login(user, createHash('sha256').update(password).digest('hex'));
  if (analyst !== null) return analyst;
  const message = `${user.slice(0, 100)}: Authentication failed: password is incorrect, or there is no user with such name`;
  throw new Refused(refusal(516, 'AUTHENTICATION_FAILED', message));
}

function takeFromLimits(org_id: string, { edge }: AnalystsDeps): void {
  const { allowed, headers } = edge.limits.take('api', org_id, 1);
  if (!allowed)
    throw new Refused(
      refusal(
        201,
        'QUOTA_EXCEEDED',
        'The organization sends too many requests. Retry after the seconds in Retry-After',
      ),
      {
        ...headers,
      },
    );
}

interface Asking {
  analyst: AnalystRecord;
  given: URLSearchParams;
  signal: AbortSignal;
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  { analyst, given, signal }: Asking,
  deps: AnalystsDeps,
): Promise<void> {
  const { engine, confinement } = deps;
  const { org_id, user } = analyst;
  const asked = readAsked(req.headers, given, engine.database);
  if ('code' in asked) throw new Refused(asked);
  if (req.headers['content-type']?.toLowerCase().startsWith('multipart/') === true)
    throw new Refused(
      refusal(36, 'BAD_ARGUMENTS', 'Parameters go into the URL and the query into the body; multipart is not accepted'),
    );
  const query = joinQuery(asked.query, await readBody(req, { bytesMax: QUERY_BYTES_MAX }));
  if (typeof query !== 'string') throw new Refused(query);
  const confined = await confinement.ensure();
  if (typeof confined === 'string')
    throw new Refused(refusal(210, 'NETWORK_ERROR', 'Analysts are not available: the engine cannot confine them'));
  const refused = await checkQuery({ engine, functions: confined.functions }, query, {
    params: asked.params,
    user,
    signal,
  });
  if (refused !== null) throw new Refused(refused);
  if (!(await hasEngineRoom(deps.room, org_id, signal)))
    throw tooMany(
      'The engine still runs cancelled queries of this organization. Retry after the seconds in Retry-After',
      5,
    );
  const acceptEncoding = req.headers['accept-encoding'];
  const from = await engine.ask({
    org_id,
    user,
    query,
    params: asked.params,
    acceptEncoding: acceptEncoding ?? 'identity',
    signal,
  });
  const headers = PASSED_HEADERS.flatMap((name) => {
    const value = from.headers[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  res.writeHead(from.statusCode ?? 502, {
    ...Object.fromEntries(headers),
    ...(asked.query_id === null ? {} : { 'X-ClickHouse-Query-Id': asked.query_id }),
  });
  const watch = watchForStall(res);
  try {
    await pipeline(from, res, { signal: AbortSignal.any([signal, watch.signal]) });
  } finally {
    watch.stop();
  }
}

/** Sends what ended the request, or cuts the connection if the response has begun. */
async function fail(
  req: IncomingMessage,
  res: ServerResponse,
  thrown: unknown,
  [time, gone, cut]: readonly AbortSignal[],
  { edge }: AnalystsDeps,
): Promise<void> {
  if (res.headersSent || gone?.aborted === true) {
    res.destroy();
    return;
  }
  let refused: Refusal;
  if (thrown instanceof Refused) refused = thrown.refusal;
  else if (time?.aborted === true)
    refused = refusal(159, 'TIMEOUT_EXCEEDED', `Timeout exceeded: ${ORG_SECONDS_MAX} seconds`);
  else if (cut?.aborted === true) refused = refusal(516, 'AUTHENTICATION_FAILED', 'The analyst was taken away');
  else if (thrown instanceof ApiError && thrown.code === 'payload_too_large')
    refused = refusal(223, 'QUERY_IS_TOO_LARGE', `The query is larger than ${QUERY_BYTES_MAX} bytes`);
  else if (thrown instanceof ApiError || thrown instanceof MalformedBody)
    refused = refusal(36, 'BAD_ARGUMENTS', thrown.message.replace(/\.$/, ''));
  else {
    edge.log.error({ request_id: res.getHeader(REQUEST_ID_HEADER), err: thrown }, "an analyst's query failed");
    refused = refusal(210, 'NETWORK_ERROR', 'The engine cannot be reached. Try again');
  }
  await discardBody(req, res, statusOf(refused));
  sendRefusal(res, refused, thrown instanceof Refused ? thrown.headers : {});
}

const tooMany = (message: string, retryAfterSeconds: number): Refused =>
  new Refused(refusal(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', message), { 'Retry-After': String(retryAfterSeconds) });
const refusal = (code: number, type: string, message: string): Refusal => ({ code, type, message });
