// What a worker shows of itself, and what an API process shows of the whole service.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { startServiceGauges } from '../../../api/system/gauges.ts';
import { parseEnv } from '../../../ops/platform/env.ts';
import { registry } from '../../../ops/platform/metrics.ts';
import { SECURITY_HEADERS } from '../../../ops/platform/security_headers.ts';
import { type MetricsServer, serveMetrics } from '../../../pipeline/wiring/metrics_server.ts';
import { eventually } from '../../support/wait.ts';

let exposed: MetricsServer | null = null;
afterEach(() => {
  exposed?.close();
  exposed = null;
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

it('a worker answers /healthz at once, /readyz when it is ready, and /metrics', async () => {
  exposed = await serveMetrics(parseEnv({}));
  const at = async (path: string) => {
    const answer = await fetch(new URL(path, exposed?.url));
    return [answer.status, await answer.text()] as const;
  };
  expect(await at('/healthz')).toEqual([200, '{"status":"ok"}\n']);
  expect(await at('/readyz')).toEqual([503, '{"status":"unavailable"}\n']);
  exposed.ready();
  expect(await at('/readyz')).toEqual([200, '{"status":"ready"}\n']);
  expect((await at('/metrics'))[1]).toContain('millrace_pipeline_lag_seconds');
  expect((await at('/other'))[0]).toBe(404);
});

it.each(['/healthz', '/readyz', '/metrics', '/other'])(
  'a worker answers %s with the security headers',
  async (path) => {
    exposed = await serveMetrics(parseEnv({}));
    const { headers } = await fetch(new URL(path, exposed.url));
    for (const [name, value] of SECURITY_HEADERS) expect([name, headers.get(name)]).toEqual([name, value]);
  },
);

it('a worker that serves its own port gives API processes no address, so that its metrics count once', async () => {
  const port = await freePort();
  exposed = await serveMetrics(parseEnv({ SERVICE_PIPELINE_HOST: '0.0.0.0', SERVICE_PIPELINE_PORT: String(port) }));
  expect(exposed.url).toBe('');
  expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
  await expect(
    serveMetrics(parseEnv({ SERVICE_PIPELINE_HOST: '0.0.0.0', SERVICE_PIPELINE_PORT: String(port) })),
  ).rejects.toThrow(`SERVICE_PIPELINE_PORT: 0.0.0.0:${port} cannot be listened on`);
});

it('an API process shows /readyz, partitions without a worker, and how full bounded streams are', async () => {
  const stream = (name: string, max_bytes: number) => ({
    config: { name, max_bytes },
    state: { messages: 3, bytes: 70 },
  });
  const streams = { list: () => [stream('INGEST', 100), stream('KV_orgs', -1)] };
  const stop = startServiceGauges({
    readiness: {
      check: () =>
        Promise.resolve({
          status: 'unavailable',
          checks: { nats: 'ok', clickhouse: 'down', consumers: 'down', budgets: 'ok' },
        }),
      unowned: () => 2,
    },
    jsm: { streams } as never,
    tracked: { connected: true },
  });
  let shown = '';
  await eventually(
    async () => {
      shown = await registry.metrics();
      return shown.includes('millrace_stream_max_bytes{stream="INGEST"} 100');
    },
    { what: 'the first look' },
  );
  stop();
  for (const line of [
    'millrace_check_ok{check="nats"} 1',
    'millrace_check_ok{check="clickhouse"} 0',
    'millrace_partitions_unowned 2',
  ])
    expect(shown).toContain(line);
  for (const line of ['millrace_stream_bytes{stream="INGEST"} 70', 'millrace_stream_messages{stream="INGEST"} 3'])
    expect(shown).toContain(line);
  expect(shown).not.toContain('KV_orgs');
});
