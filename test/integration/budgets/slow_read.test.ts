// Limits that are set while the store is slow: the answer to the change waits until they apply.
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { TestOrg } from './a_budget.ts';

/** Longer than an idle store takes to read what an organization has used, milliseconds. */
const SLOW_MS = 2500;

let service: TestService;
let store: SlowStore;
let api: TestApi;

interface SlowStore {
  url: string;
  /** Delays every read of sums of use from now on. */
  slowDown(): void;
  close(): Promise<void>;
}

/** Starts a proxy before ClickHouse. */
async function startSlowStore(target: string): Promise<SlowStore> {
  const to = new URL(target);
  const pace = { slow: false };
  const server = createServer((req, res) => {
    const isUse = new URL(req.url ?? '/', to).searchParams.get('log_comment') === 'usage_period_sums';
    setTimeout(
      () => {
        const { method, url: path, headers } = req;
        const onward = request({ host: to.hostname, port: to.port, method, path, headers }, (answer) => {
          res.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(res);
        });
        onward.on('error', () => res.destroy());
        req.pipe(onward);
      },
      pace.slow && isUse ? SLOW_MS : 0,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    slowDown() {
      pace.slow = true;
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

beforeAll(async () => {
  service = await TestService.start();
  store = await startSlowStore(service.urls.clickhouseUrl);
  api = await startTestApi({ ...service.urls, clickhouseUrl: store.url });
}, 90_000);
afterAll(async () => {
  await api.close();
  await store.close();
  await service.close();
});

test('a limit that is set while the store is slow refuses events from the answer on, with what was used before', async () => {
  const org = await TestOrg.make([api]);
  expect((await org.send(api, 1500)).status).toBe(200);
  await eventually(async () => (await org.budget(api)).tokens.used === 1500, { what: 'the use' });
  store.slowDown();
  const set = await org.call(api, 'PUT', `/orgs/${org.id}/budget`, { tokens: { hard_limit: 1600 } });
  expect(set.status).toBe(200);
  expect((await org.send(api, 100)).status).toBe(200);
  expect((await org.send(api, 100)).status).toBe(429);
}, 60_000);
