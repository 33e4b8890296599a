// A proxy before an API that replaces headers of requests and changes nothing else.
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HeaderProxy {
  url: string;
  close: () => Promise<void>;
}

/**
 * Starts a proxy on a free port. The caller must close() it.
 * @param portOf port of the API
 * @param replaced headers of each request; undefined removes one, and Host is then that of the API
 */
export async function startHeaderProxy(
  portOf: () => number,
  replaced: Readonly<Record<string, string | undefined>>,
): Promise<HeaderProxy> {
  const server = createServer((req, res) => {
    const headers = Object.fromEntries(
      Object.entries({ ...req.headers, ...replaced }).filter(([, value]) => value !== undefined),
    );
    const onward = request({ host: '127.0.0.1', port: portOf(), method: req.method, path: req.url, headers });
    onward.on('response', (answer) => {
      res.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => res.destroy());
    res.on('close', () => onward.destroy());
    req.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
