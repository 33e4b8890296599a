// A proxy before ClickHouse that breaks the connection of one statement and keeps its complete
// request until the test delivers it, or that keeps statements waiting. It simulates an engine or a
// network that pauses and then processes everything that arrived meanwhile, or that is slow.
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Kept {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

export interface HoldingProxy {
  /** The given address, with the proxy's host and port. */
  url: string;
  /** Holds the next statement that contains `part` and breaks its sender's connection. */
  hold(part: string): void;
  /**
   * Sends the held statement. Resolves with the engine's status and the number of rows that it
   * wrote, including those of views.
   */
  deliver(): Promise<{ status: number; written_rows: number }>;
  /** Keeps every statement waiting from now on that contains `part` and whose rows contain `rows`. */
  stall(part: string, rows: string): void;
  /** Number of statements that wait. The engine never receives them. */
  readonly stalled: number;
  close(): Promise<void>;
}

/** Reads a whole request. */
async function read(req: IncomingMessage): Promise<Kept> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return { method: req.method ?? 'POST', path: req.url ?? '/', headers: req.headers, body: Buffer.concat(chunks) };
}

/** Forwards a request. */
function forward(
  to: URL,
  { method, path, headers, body }: Kept,
  answer: (res: IncomingMessage) => void,
  fail: (error: Error) => void,
): void {
  // The body is complete, so it is sent with its length even if it arrived in chunks.
  const own: OutgoingHttpHeaders = { ...headers, host: to.host, 'content-length': body.length };
  delete own['transfer-encoding'];
  const req = request({ host: to.hostname, port: to.port, method, path, headers: own }, answer);
  req.once('error', fail);
  req.end(body);
}

/**
 * Starts the proxy.
 * @param target http://user:password@host:port/database
 */
export async function startHoldingProxy(target: string): Promise<HoldingProxy> {
  const to = new URL(target);
  let part: string | null = null;
  let kept: Kept | null = null;
  let slow: { part: string; rows: string } | null = null;
  let stalled = 0;
  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const one = await read(req);
    const statement = new URL(one.path, to).searchParams.get('query') ?? one.body.toString();
    if (part !== null && statement.includes(part)) {
      part = null;
      kept = one;
      req.socket.resetAndDestroy();
      return;
    }
    if (slow !== null && statement.includes(slow.part) && one.body.includes(slow.rows)) {
      stalled += 1;
      return;
    }
    forward(
      to,
      one,
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      },
      () => res.destroy(),
    );
  };
  const server = createServer((req, res) => {
    handle(req, res).catch(() => res.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    hold(next) {
      part = next;
    },
    async deliver() {
      const late = kept;
      if (late === null) throw new Error('nothing was kept');
      kept = null;
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        forward(to, late, resolve, reject);
      });
      answer.resume();
      await new Promise((resolve) => answer.once('end', resolve));
      const summary = JSON.parse(String(answer.headers['x-clickhouse-summary'] ?? '{}')) as { written_rows?: string };
      return { status: answer.statusCode ?? 0, written_rows: Number(summary.written_rows ?? 0) };
    },
    stall(slowPart, rows) {
      slow = { part: slowPart, rows };
    },
    get stalled() {
      return stalled;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
