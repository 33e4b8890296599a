// Edge cases of budgets: use before and after a budget is set, invalid names, storage and
// sandboxes, batches, chains, and the error code of each rejection.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { call, startTestApi, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { ADMIN, code, modelCall, TestOrg } from './a_budget.ts';

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start();
  api = await service.startApi();
}, 60_000);

afterAll(async () => {
  await service.close();
});

const customEvent = (name: string, attributes: Record<string, unknown> = {}) => ({
  name,
  outcome: 'success',
  duration_ms: 1,
  attributes,
});
const llm = (tokens: number, agent_id: string) => ({
  span_kind: 'llm',
  model: 'gpt-4o',
  input_tokens: tokens,
  output_tokens: 0,
  agent_id,
});
/** Returns the size of an event as it is stored, in bytes. */
const bytesOf = (event: unknown): number => Buffer.byteLength(JSON.stringify(event));

test.each([
  ['__proto__', '__proto__'],
  ['constructor', 'constructor'],
  ['in Cyrillic, with a smile', 'ключ \u{1f600}'],
  ['with every mark', 'a.b:c/d?e *>'],
  ['with half a surrogate pair', 'half \ud800'],
  ['with 512 characters', 'x'.repeat(512)],
])('an agent named %s has a limit of its own', async (_, agent_id) => {
  const org = await TestOrg.make([api]);
  const made = await org.limitAgent(api, agent_id, { hard_limit: 10 });
  expect(made.status).toBe(201);
  await org.limit([api], { tokens: { hard_limit: 1000 } });
  expect((await org.send(api, 10, { agent_id })).status).toBe(200);
  const refused = await org.send(api, 1, { agent_id });
  expect(code(refused)).toBe('429 rate_limited');
  expect(refused.json?.['detail']).toContain('of the agent');
  expect((await org.send(api, 5, { agent_id: 'other' })).status).toBe(200);
  expect((await org.send(api, 5)).status).toBe(200);
  await org.landed(api, 20);
  const list = await org.call(api, 'GET', `/orgs/${org.id}/budget/agents`);
  expect(list.json?.['data']).toMatchObject([
    { agent_id: agent_id.toWellFormed(), tokens: { used: 10, hard_limit: 10, status: 'hard_exceeded' } },
  ]);
  // A new API process reads the record from KV.
  const later = await startTestApi(service.urls);
  try {
    await eventually(async () => code(await org.send(later, 0, { agent_id })) === '429 rate_limited', {
      what: 'a refusal there',
    });
    expect((await org.send(later, 0, { agent_id: 'other' })).status).toBe(200);
  } finally {
    await later.close();
  }
  expect((await org.limitAgent(api, agent_id, { hard_limit: null })).status).toBe(201);
  expect((await org.send(api, 1, { agent_id })).status).toBe(200);
  expect((await org.call(api, 'GET', `/orgs/${org.id}/budget/agents`)).json?.['data']).toEqual([]);
});

test('an agent that gets a limit later is rejected by its earlier use', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 1000 } });
  for (const agent_id of ['late', 'other']) expect((await org.send(api, 20, { agent_id })).status).toBe(200);
  await org.landed(api, 40);
  const made = await org.limitAgent(api, 'late', { hard_limit: 20 });
  expect(made.json?.['data']).toMatchObject({ tokens: { used: 20, status: 'hard_exceeded' } });
  await eventually(async () => code(await org.send(api, 0, { agent_id: 'late' })) === '429 rate_limited', {
    what: 'a refusal',
  });
  expect((await org.send(api, 0, { agent_id: 'other' })).status).toBe(200);
});

test('storage counts the bytes of events, a chain with its steps once, and rejects at the limit', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { storage_mb: { soft_limit: 1, hard_limit: 2 } });
  const chain = {
    chain_name: 'research',
    request: { model: 'gpt-4o', messages: [{ role: 'user', content: 'go' }] },
    response: {
      generations: [[{ text: 'done' }]],
      llm_output: { token_usage: { prompt_tokens: 30, completion_tokens: 12 }, model_name: 'gpt-4o' },
    },
    intermediate_steps: [
      ['search(x)', 'found'],
      ['read(y)', 'text '.repeat(200_000)],
    ],
    duration_ms: 10,
    outcome: 'success',
  };
  expect((await org.ingest(api, 'chain', chain)).status).toBe(200);
  await org.landed(api, 42);
  const first = await org.budget(api);
  expect(first.storage_mb).toMatchObject({ used: bytesOf(chain) / 1e6, status: 'soft_exceeded' });
  expect(first.tokens).toMatchObject({ used: 42, percentage: 0, status: 'ok' });
  const event = customEvent('big', { text: 'x'.repeat(1_100_000) });
  expect((await org.ingest(api, 'custom', event)).status).toBe(200);
  const refused = await org.send(api, 1);
  expect(code(refused)).toBe('429 rate_limited');
  expect(refused.json?.['detail']).toContain('storage_mb (2)');
  expect(refused.headers.get('x-quota-tokens-status')).toBe('hard_exceeded');
  await eventually(async () => (await org.budget(api)).storage_mb.used === (bytesOf(chain) + bytesOf(event)) / 1e6, {
    what: 'both landed',
  });
});

test('seconds of sandboxes count with their fractions, and reject at the limit', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { sandbox_seconds: { hard_limit: 10 } });
  const events = [customEvent('a', { sandbox_seconds: 4.000001 }), customEvent('b', { sandbox_seconds: '5.9' })];
  expect((await org.ingest(api, 'custom', { events })).status).toBe(200);
  await eventually(async () => (await org.budget(api)).sandbox_seconds.used === 9.900001, { what: 'both landed' });
  expect((await org.ingest(api, 'custom', customEvent('c', { sandbox_seconds: 0.099999 }))).status).toBe(200);
  const refused = await org.ingest(api, 'custom', customEvent('d'));
  expect(refused.json?.['detail']).toContain('sandbox_seconds (10)');
});

test('seconds beside the attributes count as well; an invalid amount is rejected by name, never with a 5xx', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { sandbox_seconds: { hard_limit: 5 } });
  const beside = (name: string, more: Record<string, unknown>) =>
    org.ingest(api, 'custom', { ...customEvent(name), ...more });
  for (const more of [{ cost_usd: 'free' }, { cost_usd: -5 }, { sandbox_seconds: 1e300 }, { sandbox_seconds: 'long' }])
    expect(code(await beside('none', more))).toBe('422 decode_failed');
  expect((await beside('all', { sandbox_seconds: 5, cost_usd: '0.5' })).status).toBe(200);
  expect((await beside('more', {})).json?.['detail']).toContain('sandbox_seconds (5)');
  await eventually(async () => (await org.budget(api)).sandbox_seconds.used === 5, { what: 'it landed' });
  expect((await org.budget(api)).total_cost_usd).toBe(0.5);
});

test('a batch over several partitions with one event of a blocked agent is rejected as a whole, and uses nothing', async () => {
  const org = await TestOrg.make([api]);
  await org.limitAgent(api, 'small', { hard_limit: 5 });
  await org.limit([api], { tokens: { hard_limit: 100 } });
  expect((await org.send(api, 5, { agent_id: 'small' })).status).toBe(200);
  const events = Array.from({ length: 30 }, (_, index) =>
    customEvent(`e${index}`, llm(3, index === 29 ? 'small' : 'big')),
  );
  expect(code(await org.ingest(api, 'custom', { events }))).toBe('429 rate_limited');
  expect((await org.ingest(api, 'custom', { events: events.slice(0, 29) })).status).toBe(200);
  await org.landed(api, 92);
  expect((await org.budget(api)).tokens.used).toBe(92);
  // The batch that crosses the limit is admitted whole; the call after it is rejected.
  const last = Array.from({ length: 20 }, (_, index) => customEvent(`f${index}`, llm(3, 'big')));
  expect((await org.ingest(api, 'custom', { events: last })).status).toBe(200);
  expect(code(await org.send(api, 0, { agent_id: 'big' }))).toBe('429 rate_limited');
  await org.landed(api, 152);
});

test('a repeat under an Idempotency-Key is answered again when the limit is reached; a new key is rejected and released', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 10 } });
  const [first, second] = [randomUUID(), randomUUID()];
  const [used, asked] = [modelCall(10), modelCall(1)];
  const answered = await org.ingest(api, 'chatcompletion', used, { 'Idempotency-Key': first });
  expect(answered.status).toBe(200);
  const again = await org.ingest(api, 'chatcompletion', used, { 'Idempotency-Key': first });
  expect([again.status, again.headers.get('idempotency-replayed'), again.text]).toEqual([200, 'true', answered.text]);
  expect(code(await org.ingest(api, 'chatcompletion', asked, { 'Idempotency-Key': second }))).toBe('429 rate_limited');
  await org.limit([api], { tokens: { hard_limit: 1000 } });
  const later = await org.ingest(api, 'chatcompletion', asked, { 'Idempotency-Key': second });
  expect([later.status, later.headers.get('idempotency-replayed')]).toEqual([200, null]);
});

test('a repeated event uses nothing more once it is recognised', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 1000 } });
  for (let times = 0; times < 4; times++) expect((await org.send(api, 30, { question: 'the same' })).status).toBe(200);
  await org.landed(api, 30);
  await org.limit([api], { tokens: { hard_limit: 31 } });
  await eventually(async () => (await org.send(api, 1)).status === 200, { what: 'the token that is left' });
  expect(code(await org.send(api, 0))).toBe('429 rate_limited');
  await org.landed(api, 31);
  expect((await org.budget(api)).tokens.used).toBe(31);
});

test('the rate is checked first, then the event, then the budget', async () => {
  const org = await TestOrg.make([api], { rate_limits: { ingest_per_minute: 1, api_per_minute: 1000, burst: 3 } });
  await org.limit([api], { tokens: { hard_limit: 10 } });
  expect((await org.send(api, 10)).status).toBe(200);
  expect(code(await org.ingest(api, 'chatcompletion', { no: 'event' }))).toBe('422 decode_failed');
  const budget = await org.send(api, 1);
  expect(code(budget)).toBe('429 rate_limited');
  expect(budget.headers.get('x-quota-tokens-status')).toBe('hard_exceeded');
  const rate = await org.ingest(api, 'chatcompletion', { no: 'event' });
  expect(code(rate)).toBe('429 rate_limited');
  expect(rate.headers.get('x-quota-tokens-status')).toBeNull();
  expect(Number(rate.headers.get('retry-after'))).toBeLessThanOrEqual(60);
});

test('a spent overage budget answers 402, no overage budget 429; 0 is spent at once', async () => {
  const org = await TestOrg.make([api]);
  const overage = (overage_budget_usd: number | null) =>
    call(api, 'PATCH', `/admin/orgs/${org.id}`, { headers: ADMIN, body: { overage_budget_usd } });
  await org.limit([api], { tokens: { hard_limit: 10 } });
  expect((await org.send(api, 10)).status).toBe(200);
  await overage(0);
  const paid = await org.send(api, 1);
  expect(code(paid)).toBe('402 payment_required');
  expect(Number(paid.headers.get('retry-after'))).toBeGreaterThan(0);
  await overage(null);
  expect(code(await org.send(api, 1))).toBe('429 rate_limited');
  await overage(0.5);
  expect((await org.send(api, 1, { attributes: { cost_usd: 0.4 } })).status).toBe(200);
  expect((await org.send(api, 1, { attributes: { cost_usd: 0.4 } })).status).toBe(200);
  expect(code(await org.send(api, 1))).toBe('402 payment_required');
  // A higher hard limit starts the overage budget over.
  await org.limit([api], { tokens: { hard_limit: 14 } });
  for (let i = 0; i < 2; i++) expect((await org.send(api, 1)).status).toBe(200);
  expect((await org.send(api, 1, { attributes: { cost_usd: 0.6 } })).status).toBe(200);
  expect(code(await org.send(api, 1))).toBe('402 payment_required');
});

test("a longer period chosen by a policy sends its alerts once, and leaves the month's unchanged", async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 100 } });
  expect((await org.send(api, 100)).status).toBe(200);
  const states = await api.log.bucket('budget_states');
  const toldIn = async (): Promise<Record<string, { told: string[] }>> => {
    for await (const key of await states.keys()) {
      const state = JSON.parse((await states.get(key))?.string() ?? '{}') as {
        org_id?: string;
        periods?: Record<string, { told: string[] }>;
      };
      if (state.org_id === org.id) return state.periods ?? {};
    }
    return {};
  };
  const month = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth())).toISOString();
  await eventually(async () => (await toldIn())[month]?.told.length === 1, { what: 'the month told' });
  // A fiscal year that starts next month, so the current one began eleven months ago.
  const first = ((new Date().getUTCMonth() + 1) % 12) + 1;
  await org.policy(api, { period: 'fiscal_year', fiscal_year_start_month: first });
  await eventually(async () => (await org.budget(api)).period === 'fiscal_year', { what: 'the policy' });
  const year = (await org.budget(api)).period_start;
  expect(year < month).toBe(true);
  // The new limit makes the worker examine the budget again.
  await org.limit([api], { tokens: { hard_limit: 90 } });
  await eventually(async () => (await toldIn())[year]?.told.includes('hard:tokens:90') === true, {
    what: 'the year told',
  });
  expect((await toldIn())[month]?.told).toEqual(['hard:tokens:100']);
});
