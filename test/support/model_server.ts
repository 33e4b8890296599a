// An upstream of the gateway for tests: a real HTTP server that records the exact bytes of its
// requests and answers as the test specifies.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Reached {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  rawHeaders: string[];
  body: Buffer;
  /** Whether the connection broke before the answer ended. */
  gone: boolean;
}

export type ModelBehaviour = (res: ServerResponse, reached: Reached) => void;

export interface ModelServer {
  /** http://127.0.0.1:port/v1 */
  url: string;
  reached: Reached[];
  /**
   * Sets the behaviour for subsequent requests: each behaviour of a list answers one request, and
   * the last answers all further ones.
   */
  behave(...behaviours: ModelBehaviour[]): void;
  close(): Promise<void>;
}

export const json =
  (status: number, text: string, headers: Record<string, string> = {}): ModelBehaviour =>
  (res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  };

/** Answers with server-sent events. The stream stays open if `end` is false. */
export const events =
  (texts: readonly string[], end = true): ModelBehaviour =>
  (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    for (const text of texts) res.write(text);
    if (end) res.end();
  };

/** Breaks the connection. */
export const reset: ModelBehaviour = (res) => void res.socket?.resetAndDestroy();
/** Never answers. */
export const silence: ModelBehaviour = () => undefined;

/** Starts a model server. The caller's afterAll must call close(). */
export async function startModelServer(): Promise<ModelServer> {
  const reached: Reached[] = [];
  let behaviours: ModelBehaviour[] = [json(200, '{}')];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('error', () => undefined);
    res.on('error', () => undefined);
    req.on('end', () => {
      const one: Reached = {
        method: req.method ?? '',
        path: req.url ?? '',
        headers: req.headers,
        rawHeaders: req.rawHeaders,
        body: Buffer.concat(chunks),
        gone: false,
      };
      reached.push(one);
      res.on('close', () => (one.gone = !res.writableFinished));
      const behaviour = behaviours.length > 1 ? behaviours.shift() : behaviours[0];
      behaviour?.(res, one);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    reached,
    behave: (...list) => {
      behaviours = list;
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
