// A proxy between a browser and the service, as a network that is slow or loses connections. It forwards every request
// unchanged; tests delay the answers of the API, and cut the connections to a path.
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PortalService } from './portal_service.ts';

export interface PortalProxy {
  /** The service at the address of the proxy. */
  portal: PortalService;
  /** Delays the answers of the API from now on. */
  delay(ms: number): void;
  /** Breaks the connections to a path, those that are open and those to come; null lets all through. */
  cut(path: string | null): void;
  /** Returns the number of open requests to a path. */
  open(path: string): number;
  close(): Promise<void>;
}

/** Starts a proxy before a service. The caller closes it. */
export async function startPortalProxy(portal: PortalService): Promise<PortalProxy> {
  const to = new URL(portal.url);
  const requests = new Set<{ path: string; res: ServerResponse }>();
  let delay_ms = 0;
  let broken: string | null = null;
  const isBroken = (path: string): boolean => broken !== null && path.startsWith(broken);
  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const path = req.url ?? '/';
    if (isBroken(path)) {
      res.destroy();
      return;
    }
    const one = { path, res };
    requests.add(one);
    res.once('close', () => requests.delete(one));
    if (path.startsWith('/v1/')) await sleep(delay_ms);
    const onward = request(
      { host: to.hostname, port: to.port, method: req.method, path, headers: { ...req.headers, host: to.host } },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      },
    );
    onward.once('error', () => res.destroy());
    res.once('close', () => onward.destroy());
    req.pipe(onward);
  };
  const server = createServer((req, res) => void handle(req, res));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    portal: { ...portal, url: `http://127.0.0.1:${port}` },
    delay: (ms) => {
      delay_ms = ms;
    },
    cut: (path) => {
      broken = path;
      for (const one of requests) if (isBroken(one.path)) one.res.destroy();
    },
    open: (path) => [...requests].filter((one) => one.path.startsWith(path)).length,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
