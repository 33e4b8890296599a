// HTTP server of a worker: its metrics, its health and its readiness. API processes on the same
// machine include its metrics in their own.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Env } from '../../ops/platform/env.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import { SECURITY_HEADERS } from '../../ops/platform/security_headers.ts';

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

export interface MetricsServer {
  /**
   * URL where API processes on this machine read the metrics. Empty if the server listens beyond
   * the loopback interface: then a scraper reads it directly, and the metrics must not be counted
   * twice.
   */
  url: string;
  /** Makes /readyz answer 200: the store is up and partitions are being read. */
  ready(): void;
  isReady(): boolean;
  close(): void;
}

/**
 * Resolves once the server listens. /healthz answers 200 as long as the process runs, even while it
 * waits for ClickHouse.
 *
 * @throws Error naming SERVICE_PIPELINE_PORT if the address cannot be used
 */
export function serveMetrics({
  SERVICE_PIPELINE_HOST: host,
  SERVICE_PIPELINE_PORT: wanted,
}: Env): Promise<MetricsServer> {
  let ready = false;
  const server = createServer((req, res) => {
    for (const [name, value] of SECURITY_HEADERS) res.setHeader(name, value);
    const json = (status: number, body: object) =>
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
    const path = req.url?.split('?')[0];
    if (path === '/healthz') json(200, { status: 'ok' });
    else if (path === '/readyz') json(ready ? 200 : 503, { status: ready ? 'ready' : 'unavailable' });
    else if (path !== '/metrics') json(404, { status: 'not found' });
    else
      void metrics.registry.metrics().then((text) => {
        res.setHeader('Content-Type', metrics.registry.contentType).end(text);
      });
  });
  return new Promise((resolve, reject) => {
    server.once('error', (cause: Error) => {
      reject(
        new Error(`SERVICE_PIPELINE_PORT: ${host}:${wanted} cannot be listened on: ${cause.message}`, {
          cause,
        }),
      );
    });
    server.listen(wanted, host, () => {
      const { port } = server.address() as AddressInfo;
      resolve({
        url: LOOPBACK.has(host) ? `http://${host.includes(':') ? `[${host}]` : host}:${port}/metrics` : '',
        ready: () => {
          ready = true;
        },
        isReady: () => ready,
        close: () => {
          server.closeAllConnections();
          server.close();
        },
      });
    });
  });
}
