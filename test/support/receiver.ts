// A receiver of webhooks for tests: an HTTP server that records its requests and behaves, per path,
// as the test specifies.
import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  json: Record<string, unknown>;
  event_id: string;
  attempt: number;
  /** Time of arrival, from performance.now(), in milliseconds. */
  at: number;
}

/** Answers a request, or leaves it unanswered. */
export type Behaviour = (res: ServerResponse, received: Received) => void;

export interface Receiver {
  /** http://127.0.0.1:port */
  url: string;
  received: Received[];
  /** Returns the requests to a path. */
  at(path: string): Received[];
  /** Sets the behaviour of a path. Default: answers 200. */
  behave(path: string, behaviour: Behaviour): void;
  close(): Promise<void>;
}

export const status =
  (code: number, headers: Record<string, string> = {}): Behaviour =>
  (res) =>
    void res.writeHead(code, headers).end('a word of the receiver');

/** Never answers. */
export const hang: Behaviour = () => undefined;
/** Breaks the connection. */
export const reset: Behaviour = (res) => void res.socket?.resetAndDestroy();
/** Answers 200 and never stops sending. */
export const flood: Behaviour = (res) => {
  res.writeHead(200);
  const more = () => {
    while (!res.destroyed && res.write(Buffer.alloc(65_536)));
    if (!res.destroyed) res.once('drain', more);
  };
  more();
};
/** Answers 200 and never ends the body. */
export const endless: Behaviour = (res) => {
  res.writeHead(200);
  res.write('{');
};

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const behaviours = new Map<string, Behaviour>();
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      // The sender was killed in the middle of the request.
      if (!req.complete) return;
      const body = Buffer.concat(chunks);
      const one: Received = {
        path: req.url ?? '',
        headers: req.headers,
        body,
        json: JSON.parse(body.toString('utf8')) as Record<string, unknown>,
        event_id: String(req.headers['x-service-event-id']),
        attempt: Number(req.headers['x-service-attempt']),
        at: performance.now(),
      };
      received.push(one);
      (behaviours.get(one.path) ?? status(200))(res, one);
    });
    req.on('error', () => undefined);
    res.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    at: (path) => received.filter((one) => one.path === path),
    behave: (path, behaviour) => void behaviours.set(path, behaviour),
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

/**
 * Verifies a delivery with the documented steps. Returns those of the given secrets that have
 * signed it.
 */
export function signersOf({ headers, body }: Received, secrets: readonly string[], nowMs = Date.now()): string[] {
  const parts = String(headers['x-service-signature'])
    .split(',')
    .map((part) => part.split('='));
  const t = Number(parts.find(([name]) => name === 't')?.[1]);
  if (Math.abs(nowMs / 1000 - t) > 300) return [];
  const signed = Buffer.concat([Buffer.from(`${t}.`), body]);
  return secrets.filter((secret) => {
    const hex = createHmac('sha256', secret).update(signed).digest('hex');
    return parts.some(([name, value]) => name === 'v1' && value === hex);
  });
}
