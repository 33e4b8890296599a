// Audit records of the first start: the organization and its key are recorded once, no matter which
// process starts and how often.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditEntries } from '../../support/audited.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { ADMIN_TOKEN, call, ORG, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;

beforeAll(async () => {
  nats = await startTestNats();
});

afterAll(async () => {
  await nats.remove();
});

const bootstrapped = async (api: TestApi) =>
  (await auditEntries(api.log)).filter(({ actor_id }) => actor_id === 'bootstrap');

test('the bootstrap writes audit records with actor system once for all processes, and none for a revoked key', async () => {
  const [one, two] = await Promise.all([startTestApi({ natsUrl: nats.url }), startTestApi({ natsUrl: nats.url })]);
  const listed = (await call(one, 'GET', `/orgs/${ORG}/api-keys`)).json?.['data'] as {
    id: string;
    key_prefix: string;
  }[];
  const [key] = listed;
  const done = (await bootstrapped(one)).filter(({ phase }) => phase === 'done');
  expect(
    done.map(({ org_id, actor_type, action, target_type, target_id }) => [
      org_id,
      actor_type,
      action,
      target_type,
      target_id,
    ]),
  ).toEqual([
    [ORG, 'system', 'org.create', 'org', ORG],
    [ORG, 'system', 'api_key.create', 'api_key', key?.id],
  ]);
  expect(done.map(({ changes }) => JSON.parse(changes) as unknown)).toEqual([
    { name: ORG, plan_name: 'enterprise', owner: { user_id: 'user_local', email: 'owner@localhost.localdomain' } },
    { name: 'bootstrap', scopes: ['*'], key_prefix: key?.key_prefix },
  ]);
  expect((await call(two, 'DELETE', `/orgs/${ORG}/api-keys/${String(key?.id)}`)).status).toBe(200);
  const entries = (await bootstrapped(one)).length;
  await Promise.all([one.close(), two.close()]);
  const again = await startTestApi({ natsUrl: nats.url });
  expect((await bootstrapped(again)).length).toBe(entries);
  const orgs = await call(again, 'GET', '/admin/orgs', { headers: { Authorization: `Bearer ${ADMIN_TOKEN}` } });
  expect([orgs.status, (await call(again, 'GET', `/orgs/${ORG}`)).status]).toEqual([200, 401]);
  await again.close();
});
