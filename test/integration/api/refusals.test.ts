// The list of refused ingest requests, which is the same at every API process.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { REFUSALS_ORG_MAX } from '../../../ops/exchange/refusals.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aTenant, type Caller, type Tenant } from '../a_tenant.ts';
import { type Answer, call, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let api: TestApi;
let other: TestApi;
let tenant: Tenant;

beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url });
  other = await startTestApi({ natsUrl: nats.url, production: true });
  tenant = await aTenant({ api });
});
afterAll(async () => {
  await api.close();
  await other.close();
  await nats.remove();
});

const send = (body: unknown, headers: Caller = tenant.key, at = api): Promise<Answer> =>
  call(at, 'POST', `/orgs/${tenant.org}/ingest/custom`, { headers, body });
const list = async (by: Tenant, at = api): Promise<Record<string, unknown>[]> =>
  (await call(at, 'GET', '/v1/ingest/refusals', { headers: by.key })).json?.['data'] as Record<string, unknown>[];

it('lists refused requests of all processes with their error, newest first, to their organization only', async () => {
  const bad = await send({ events: 'none' });
  const spans = await call(other, 'POST', '/v1/otlp/v1/traces', { headers: tenant.key, raw: '{' });
  expect([bad.status >= 400, spans.status >= 400]).toEqual([true, true]);
  for (const at of [api, other]) {
    const found = await list(tenant, at);
    expect(found.map(({ path, code }) => [path, code])).toEqual([
      ['/v1/otlp/v1/traces', expect.any(String)],
      [`/orgs/${tenant.org}/ingest/custom`, bad.json?.['code']],
    ]);
    expect(found[1]).toMatchObject({
      detail: bad.json?.['detail'],
      key_prefix: String(tenant.key['X-Org-Api-Key']).slice(0, 12),
    });
  }
  expect(await list(await aTenant({ api }))).toEqual([]);
});

it('lists requests with an unknown key in development, and not in production', async () => {
  const unknown = { 'X-Org-Api-Key': 'sk_svc_unknownunknownunknown', 'X-Org-Id': undefined };
  expect((await send({ events: [] }, unknown, other)).status).toBe(401);
  expect((await list(tenant)).filter(({ code }) => code === 'unauthenticated')).toEqual([]);
  expect((await send({ events: [] }, unknown)).status).toBe(401);
  expect((await list(tenant)).find(({ code }) => code === 'unauthenticated')).toMatchObject({
    key_prefix: 'sk_svc_unkno',
  });
});

it('keeps a bounded number of them', async () => {
  for (let n = 0; n < REFUSALS_ORG_MAX + 5; n += 1) await send({ events: n });
  expect(await list(tenant)).toHaveLength(REFUSALS_ORG_MAX);
});
