// Concurrency slots of analysts' queries: callers that read nothing, queries that continue in the
// engine, and the effect of both on other organizations.
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { orgMark } from '../../../api/telemetry/analysts/engine.ts';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { ENGINE_ORG_MAX, ORG_ANALYST, orgAnalystPassword } from '../../../sql/analysts/org_views.ts';
import { startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { call, startTestApi, type TestApi } from '../api/an_api.ts';
import { anAccount, asOperator } from '../a_tenant.ts';
import { type Reply, send } from './two_orgs.ts';

const ORGS = ['org_a', 'org_b', 'org_c', 'org_d'];
/** A query whose answer exceeds every buffer between the engine and the caller. */
const EXPORT = "SELECT number, repeat('x', 100) FROM numbers(2000000) FORMAT TSV";
let engine: TestEngine;
let nats: TestNats;
let client: ClickHouse;
let apis: [TestApi, TestApi];
const logins = new Map<string, Record<string, string>>();

const startApi = (): Promise<TestApi> => startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url });
const ask = (org_id: string, body: string, at = apis[0]): Promise<Reply> =>
  send(at.url, { body, headers: logins.get(org_id) ?? {} });

beforeAll(async () => {
  [engine, nats] = await Promise.all([startTestEngine({ memoryMaxBytes: 1_500_000_000 }), startTestNats()]);
  client = createClickHouse({ url: engine.url });
  await migrate(client, {});
  apis = [await startApi(), await startApi()];
  for (const org_id of ORGS) {
    await anAccount({ api: apis[0] }, { org: org_id });
    const made = await call(apis[0], 'POST', `/admin/orgs/${org_id}/analysts`, {
      body: { name: 'a' },
      headers: asOperator,
    });
    const { user, password } = made.json?.['data'] as { user: string; password: string };
    logins.set(org_id, { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password });
    for (const api of apis)
      await eventually(async () => (await ask(org_id, 'SELECT 1', api)).status === 200, {
        withinMs: 10_000,
        what: 'an answer',
      });
  }
});

afterAll(async () => {
  for (const api of apis) await api.close();
  await client.close();
  await Promise.all([engine.remove(), nats.remove()]);
});

/** Starts an export and reads nothing of its answer. */
function stalled(
  base: string,
  { path = '/', headers = {} }: { path?: string; headers?: Record<string, string> },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const req = request(new URL(path, new URL(base).origin), { method: 'POST', agent: false, headers }, (res) => {
      res.on('error', () => undefined).pause();
      resolve(res);
    });
    req.on('error', reject);
    req.end(EXPORT);
  });
}

/** Starts four stalled exports for each organization at each API process. */
async function stalledAt(at: readonly TestApi[], org_ids: readonly string[]): Promise<IncomingMessage[]> {
  const all = at.flatMap(({ url }) =>
    org_ids.flatMap((org_id) => [1, 2, 3, 4].map(() => stalled(url, { headers: logins.get(org_id) ?? {} }))),
  );
  const answers = await Promise.all(all);
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200));
  return answers;
}

it('two organizations whose callers read nothing, at every API process, do not keep a third from its queries', async () => {
  const exports = await stalledAt(apis, ['org_a', 'org_b']);
  for (const api of apis) expect((await ask('org_c', 'SELECT 1', api)).text).toBe('1\n');
  for (const res of exports) res.destroy();
});

it('a caller that reads nothing loses its place before the queries that wait for it are rejected', async () => {
  const exports = await stalledAt([apis[0]], ['org_a', 'org_b', 'org_c']);
  expect((await ask('org_d', 'SELECT 1')).text).toBe('1\n');
  for (const res of exports) res.destroy();
});

it('an organization whose queries continue in the engine gets no further places there, in any process, until they end', async () => {
  // A killed process leaves its queries in this state: no process of the service knows them.
  const left = await Promise.all(
    Array.from({ length: ENGINE_ORG_MAX }, (_, number) =>
      stalled(engine.url, {
        path: `/?query_id=analyst_left-${orgMark('org_a')}-${number}&database=millrace_org`,
        headers: { 'X-ClickHouse-User': ORG_ANALYST, 'X-ClickHouse-Key': orgAnalystPassword('test-app-password') },
      }),
    ),
  );
  const restarted = await startApi();
  try {
    for (const at of [...apis, restarted]) {
      const refused = await ask('org_a', 'SELECT 1', at);
      expect([refused.status, refused.headers['x-clickhouse-exception-code'], refused.headers['retry-after']]).toEqual([
        503,
        '202',
        '5',
      ]);
      expect((await ask('org_b', 'SELECT 1', at)).text).toBe('1\n');
    }
    for (const res of left) res.destroy();
    await eventually(async () => (await ask('org_a', 'SELECT 1')).text === '1\n', {
      withinMs: 20_000,
      what: 'an answer once they have ended',
    });
  } finally {
    for (const res of left) res.destroy();
    await restarted.close();
  }
});
