// Events of the past: metered on the day they began, asked of no budget, and the cause of no webhook,
// judge or incident. They need a scope of their own and have a rate of their own.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { code, modelCall, TestOrg } from '../budgets/a_budget.ts';
import { LimitedKey } from '../keys/a_key.ts';
import type { TestApi } from './an_api.ts';

const DAY = 86_400_000;
const BACKFILL = { 'X-Service-Backfill': 'true' };

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
}, 60_000);
afterAll(() => service.close());

const daysAgo = (days: number): string => new Date(Date.now() - days * DAY).toISOString();
const past = (days: number, tokens = 100, more: Record<string, unknown> = {}) => ({
  ...modelCall(tokens, { attributes: { cost_usd: 0.5 } }),
  started_at: daysAgo(days),
  ...more,
});
const send = (org: TestOrg, body: unknown, headers: Record<string, string> = BACKFILL, format = 'chatcompletion') =>
  org.ingest(api, format, body, headers);

/** Returns the names and trace ids of the platform events of an organization so far. */
const platformEvents = async (org: TestOrg): Promise<string[]> =>
  (await toldEvents(api.log, org.id)).map(
    ({ event, payload }) => `${event} ${String((JSON.parse(payload) as { trace_id?: string }).trace_id)}`,
  );

test('is metered on the day it began, is asked of no budget, and fires no event, also after kill -9 of the worker', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 50 } });
  await send(org, past(0, 50), {});
  expect(code(await send(org, past(0), {}))).toBe('429 rate_limited');
  const answer = await send(org, past(60, 1000, { outcome: 'error' }));
  expect(code(answer)).toBe('200');
  await service.killWorker();
  expect(
    code(
      await send(org, { events: [{ name: 'step', outcome: 'error', started_at: daysAgo(61) }] }, BACKFILL, 'custom'),
    ),
  ).toBe('200');
  await service.startWorker();
  const old = (answer.json?.['data'] as { trace_id: string }).trace_id;
  await eventually(async () => (await org.call(api, 'GET', `/v1/traces/${old}/tree`)).status === 200, {
    what: 'the trace of the past',
    withinMs: 30_000,
  });
  const { json: body } = await org.call(api, 'GET', '/v1/cost/summary?days=90');
  const { by_day } = body?.['data'] as { by_day: { date: string; tokens: number }[] };
  expect(by_day.find(({ date }) => date === daysAgo(60).slice(0, 10))).toMatchObject({ tokens: 1000, cost_usd: 0.5 });
  // Use counts what has landed, and the present may land after the past: the killed worker held it.
  await eventually(async () => (await org.budget(api)).tokens.used === 50, {
    what: 'the use of the present alone',
    withinMs: 30_000,
  });
  // A trace of the present completes after the backfilled one has landed, so its events come last.
  await org.limit([api], { tokens: { hard_limit: null } });
  const fresh = await send(org, past(0, 1), {});
  const now = (fresh.json?.['data'] as { trace_id: string }).trace_id;
  await eventually(async () => (await platformEvents(org)).includes(`trace.completed ${now}`), {
    what: 'the events of the present',
    withinMs: 30_000,
  });
  expect((await platformEvents(org)).filter((event) => event.endsWith(old))).toEqual([]);
}, 90_000);

test('needs the scope ingest:backfill, whatever the format', async () => {
  const key = await LimitedKey.make([api], {}, { scopes: ['ingest:write'] });
  const refused = await key.call(api, 'POST', `/orgs/${key.org.id}/ingest/chatcompletion`, past(1), BACKFILL);
  expect(code(refused)).toBe('403 forbidden');
  expect(refused.json?.['detail']).toContain('ingest:backfill');
  const otlp = await key.call(api, 'POST', '/v1/traces', { resourceSpans: [] }, BACKFILL);
  expect(otlp.status).toBe(403);
  const allowed = await LimitedKey.make([api], {}, { scopes: ['ingest:backfill'], org: key.org });
  const path = `/orgs/${key.org.id}/ingest/chatcompletion`;
  expect((await allowed.call(api, 'POST', path, past(1), BACKFILL)).status).toBe(200);
  expect((await allowed.call(api, 'POST', path, past(1))).status).toBe(403);
});

test('accepts events up to 400 days old and rejects older ones with the field', async () => {
  const org = await TestOrg.make([api]);
  expect((await send(org, past(399))).status).toBe(200);
  const refused = await send(org, past(401));
  expect(code(refused)).toBe('422 decode_failed');
  expect(refused.json?.['detail']).toBe('started_at: lies more than 400 days in the past');
  expect(code(await send(org, past(1), { 'X-Service-Backfill': 'yes' }))).toBe('422 invalid_request');
});

test('has a rate of its own, beside that of ingest', async () => {
  const org = await TestOrg.make([api], { rate_limits: { ingest_per_minute: 2, api_per_minute: 600, burst: 2 } });
  const codes = [];
  for (let i = 0; i < 3; i++) codes.push((await send(org, past(i + 1))).status);
  expect(codes).toEqual([200, 200, 429]);
  expect((await send(org, past(0), {})).status).toBe(200);
});
