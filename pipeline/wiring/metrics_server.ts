// Serves a worker's own metrics on the loopback; API processes read them from there and show them with their own.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as metrics from '../../ops/metrics.ts';

/** Resolves when it listens, on a free port. */
export function serveMetrics(): Promise<{ url: string; close(): void }> {
  const server = createServer((_req, res) => {
    void metrics.registry.metrics().then((text) => {
      res.setHeader('Content-Type', metrics.registry.contentType).end(text);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      resolve({
        url: `http://127.0.0.1:${String(port)}/metrics`,
        close: () => {
          server.closeAllConnections();
          server.close();
        },
      });
    });
  });
}
