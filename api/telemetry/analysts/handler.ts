// ClickHouse's HTTP protocol for analysts of orgs, at the root of the API and ahead of Express: a login, a check of the query by the
// engine's parser, then the engine's answer as it comes. A request at / that brings no such login is none of its business.
// Guarantees: a query is one org's, bounded in bytes and time, and ends when its caller goes away or is taken away.
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

/** Of the text of a query, after decompression. */
const QUERY_BYTES_MAX = 128 * 1024;
/** From the first byte of the request to the last of the answer. */
const QUERY_MS_MAX = ORG_SECONDS_MAX * 1000;
/** In the metrics, the status of a request whose sender went away. */
const CLIENT_GONE = 499;

/** Headers of the engine's answer that are passed on; how many rows and bytes it read in tables of all orgs is not. */
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
  /** Whose user and SHA-256 of the password these are; null for nobody, or nobody any more. */
  login: (user: string, hash: string) => AnalystRecord | null;
}

/** A refusal on its way out. */
class Refused extends Error {
  readonly refusal: Refusal;
  readonly headers: Record<string, string>;

  constructor(refusal: Refusal, headers: Record<string, string> = {}) {
    super(refusal.message);
    this.refusal = refusal;
    this.headers = headers;
  }
}

/** Whether a request is in this protocol: at / with a login of it, or its /ping. */
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

/** Serves them; the answer is always sent, or cut off. */
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
    const analyst = loggedIn(req, given, deps);
    takeFromLimits(analyst.org_id, deps);
    const run = await deps.running.enter(analyst.org_id, analyst.user, AbortSignal.any(ends));
    if (run !== null) leave = run.leave;
    // It may have waited, and the analyst be gone since.
    loggedIn(req, given, deps);
    if (run === null) throw tooMany('Too many queries run at a time. Send it again shortly', 1);
    ends.push(run.signal);
    await answer(req, res, { analyst, given, signal: AbortSignal.any(ends) }, deps);
  } catch (thrown) {
    // The place is free before the rest of the body is discarded.
    leave();
    await fail(req, res, thrown, ends, deps);
  } finally {
    leave();
  }
}

/** @throws Refused */
function loggedIn(req: IncomingMessage, given: URLSearchParams, { login }: AnalystsDeps): AnalystRecord {
  const { user = '', password = '' } = loginOf(req.headers, given) ?? {};
  const analyst = login(user, createHash('sha256').update(password).digest('hex'));
  if (analyst !== null) return analyst;
  const message = `${user.slice(0, 100)}: Authentication failed: password is incorrect, or there is no user with such name`;
  throw new Refused(refusal(516, 'AUTHENTICATION_FAILED', message));
}

function takeFromLimits(org_id: string, { edge }: AnalystsDeps): void {
  const { allowed, headers } = edge.limits.take('api', org_id, 1);
  if (!allowed)
    throw new Refused(refusal(201, 'QUOTA_EXCEEDED', 'The org makes too many requests. Send it again shortly'), {
      ...headers,
    });
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
      refusal(36, 'BAD_ARGUMENTS', 'Parameters go into the URL, and the query is the body: multipart is not taken'),
    );
  const query = joinQuery(asked.query, await readBody(req, { bytesMax: QUERY_BYTES_MAX }));
  if (typeof query !== 'string') throw new Refused(query);
  const confined = await confinement.ensure();
  if (typeof confined === 'string')
    throw new Refused(refusal(210, 'NETWORK_ERROR', 'Analysts are not served: the engine cannot confine them'));
  const refused = await checkQuery({ engine, functions: confined.functions }, query, {
    params: asked.params,
    user,
    signal,
  });
  if (refused !== null) throw new Refused(refused);
  if (!(await hasEngineRoom(deps.room, org_id, signal)))
    throw tooMany(
      'The engine still runs queries of this organization that were cancelled. Retry after the seconds in Retry-After',
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

/** Says what ended it where nothing has been sent yet, else cuts the answer off. */
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
    refused = refusal(159, 'TIMEOUT_EXCEEDED', `Timeout exceeded: ${String(ORG_SECONDS_MAX)} seconds`);
  else if (cut?.aborted === true) refused = refusal(516, 'AUTHENTICATION_FAILED', 'The analyst was taken away');
  else if (thrown instanceof ApiError && thrown.code === 'payload_too_large')
    refused = refusal(223, 'QUERY_IS_TOO_LARGE', `The query is larger than ${String(QUERY_BYTES_MAX)} bytes`);
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
