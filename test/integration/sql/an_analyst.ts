// Fixtures: an analyst of one of two organizations, an engine with rows of both, and two API
// processes. Importing this module starts them for the test file and stops them after it.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect } from 'vitest';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { call, startTestApi, type TestApi } from '../api/an_api.ts';
import { anAccount, asOperator } from '../a_tenant.ts';
import { fillTwoOrgs, plantFile, type Reply, send, type Sent } from './two_orgs.ts';

export const VIEWS = ['spans', 'texts', 'calls', 'traces', 'usage', 'costs_daily', 'scores', 'feedback'].map(
  (name) => `analyst_${name}`,
);

export let engine: TestEngine;
export let nats: TestNats;
export let client: ClickHouse;
export let api: TestApi;
export let other: TestApi;
export let folder: string;
export let analyst: { user: string; password: string; url: string };

export const login = (who: { user: string; password: string } = analyst) => ({
  'X-ClickHouse-User': who.user,
  'X-ClickHouse-Key': who.password,
});
export const ask = (body: string | Buffer, sent: Sent = {}, at = api): Promise<Reply> =>
  send(at.url, { ...sent, body, headers: { ...login(), ...sent.headers } });
export const make = async (org_id: string, name: string = randomUUID()): Promise<typeof analyst> => {
  const answer = await call(api, 'POST', `/admin/orgs/${org_id}/analysts`, { body: { name }, headers: asOperator });
  expect(answer.status, answer.text).toBe(201);
  return answer.json?.['data'] as typeof analyst;
};

beforeAll(async () => {
  [engine, nats] = await Promise.all([startTestEngine({ memoryMaxBytes: 1_500_000_000 }), startTestNats()]);
  client = createClickHouse({ url: engine.url });
  await migrate(client, {});
  await fillTwoOrgs(client);
  folder = await plantFile(client);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url });
  other = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url });
  for (const org_id of ['org_a', 'org_b']) await anAccount({ api: api }, { org: org_id });
  analyst = await make('org_a', 'first');
});

afterAll(async () => {
  await api.close();
  await other.close();
  await client.close();
  await Promise.all([engine.remove(), nats.remove()]);
});
