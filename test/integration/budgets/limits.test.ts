// Budgets end to end: real APIs, real workers, the real engine. Use is what has landed. A limit
// rejects the call after the one that crosses it: at once in the same process, and in another
// process as soon as the crossing call has landed. Each alert is sent once.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, startTestApi, type TestApi } from '../api/an_api.ts';
import { anAccount, asOperator, type Caller } from '../a_tenant.ts';
import { TestService } from '../a_service.ts';

let service: TestService;
let apis: [TestApi, TestApi];
/** The organization of the current test. */
let org = '';
let key: Caller = {};
let events = 0;

beforeAll(async () => {
  service = await TestService.start();
  apis = [await service.startApi(), await service.startApi()];
}, 60_000);

afterAll(async () => {
  await service.close();
});

const asOrg = () => key;

beforeEach(async () => {
  ({ org, key } = await anAccount({ api: apis[0] }));
  await eventually(async () => (await call(apis[1], 'GET', `/orgs/${org}`, { headers: asOrg() })).status === 200, {
    what: 'the key everywhere',
  });
});

/** Sends one model call of `tokens` tokens; each call is a new event. */
function send(api: TestApi, tokens: number, agent_id?: string, more: Record<string, unknown> = {}): Promise<Answer> {
  events++;
  const body = {
    request: { model: 'gpt-4o', messages: [{ role: 'user', content: `question ${events}` }] },
    response: {
      id: `r${events}`,
      model: 'gpt-4o',
      choices: [{ index: 0, message: { role: 'assistant', content: 'answer' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens },
    },
    duration_ms: 5,
    outcome: 'success',
    attributes: { ...(agent_id === undefined ? {} : { agent_id }), ...more },
  };
  return call(api, 'POST', `/orgs/${org}/ingest/chatcompletion`, { headers: asOrg(), body });
}

interface BudgetAnswer {
  period_start: string;
  total_cost_usd: number;
  tokens: { used: number; soft_limit: number | null; hard_limit: number | null; percentage: number; status: string };
}
const budget = async (): Promise<BudgetAnswer> =>
  (await call(apis[0], 'GET', '/v1/budgets', { headers: asOrg() })).json?.['data'] as BudgetAnswer;
const put = (body: unknown): Promise<Answer> => call(apis[0], 'PUT', `/orgs/${org}/budget`, { headers: asOrg(), body });
const landed = (tokens: number) =>
  eventually(async () => (await budget()).tokens.used >= tokens, { what: `${tokens} tokens landed` });
const code = (answer: Answer) => `${answer.status} ${(answer.json?.['code'] ?? '') as string}`.trim();

const told = async () => (await toldEvents(apis[0].log, org)).filter(({ event }) => /budget|cost/.test(event));

test('an organization without limits is unlimited, and its use is what landed', async () => {
  expect(await budget()).toMatchObject({
    org_id: org,
    period: 'month',
    plan_name: 'enterprise',
    tokens: { used: 0, soft_limit: null, hard_limit: null, percentage: 0, status: 'ok' },
  });
  await send(apis[0], 1000);
  await landed(1000);
  // gpt-4o costs 2.50 USD per million input tokens, so 1000 cost 0.0025 USD.
  expect((await budget()).total_cost_usd).toBe(0.0025);
});

test('the call after the one that crosses the limit is rejected, of many concurrent ones in one process', async () => {
  expect((await put({ tokens: { soft_limit: 500, hard_limit: 1000 } })).status).toBe(200);
  const answers = await Promise.all(Array.from({ length: 64 }, () => send(apis[0], 30)));
  // 34 calls of 30 tokens are the fewest that reach 1000 tokens.
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(34);
  const refused = answers.filter(({ status }) => status !== 200);
  expect(new Set(refused.map(code))).toEqual(new Set(['429 rate_limited']));
  const [one] = refused;
  expect(one?.headers.get('x-quota-tokens-status')).toBe('hard_exceeded');
  expect(Number(one?.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(one?.json?.['detail']).toContain('tokens (1000)');
  await landed(1020);
  expect(await budget()).toMatchObject({ tokens: { used: 1020, percentage: 102, status: 'hard_exceeded' } });
  await eventually(async () => code(await send(apis[1], 30)) === '429 rate_limited', {
    what: 'a refusal in the other process',
  });
  expect((await put({ tokens: { hard_limit: null } })).status).toBe(200);
  await eventually(async () => (await send(apis[1], 30)).status === 200, { what: 'ingest without the limit' });
});

test('a process that starts knows the earlier use', async () => {
  await put({ tokens: { hard_limit: 100 } });
  await send(apis[0], 100);
  await landed(100);
  const later = await startTestApi(service.urls);
  try {
    await eventually(async () => code(await send(later, 1)) === '429 rate_limited', {
      what: 'a refusal in a new process',
    });
  } finally {
    await later.close();
  }
  expect((await budget()).tokens.used).toBeLessThanOrEqual(102);
});

test('a repeated event is admitted and counted once; an invalid limit is rejected', async () => {
  await put({ tokens: { hard_limit: 1000 } });
  const body = { events: [{ name: 'step', outcome: 'success', duration_ms: 1, attributes: { input_tokens: 1 } }] };
  for (let i = 0; i < 3; i++)
    expect((await call(apis[0], 'POST', `/orgs/${org}/ingest/custom`, { headers: asOrg(), body })).status).toBe(200);
  expect(code(await put({ tokens: { soft_limit: 2000 } }))).toBe('422 invalid_request');
  expect(code(await put({ tokens: { soft_limit: -1 } }))).toBe('422 invalid_request');
  expect(code(await put({ token: { soft_limit: 1 } }))).toBe('422 invalid_request');
  expect(code(await put({ tokens: { soft_limit: 1.5 } }))).toBe('422 invalid_request');
});

test("an agent's own limit replaces the organization's for its events", async () => {
  const set = (agent_id: string, hard_limit: number) =>
    call(apis[0], 'POST', `/orgs/${org}/budget/agents`, {
      headers: asOrg(),
      body: { agent_id, tokens: { hard_limit } },
    });
  expect(await set('small', 50)).toMatchObject({
    status: 201,
    json: { data: { agent_id: 'small', tokens: { used: 0, hard_limit: 50 } } },
  });
  await put({ tokens: { hard_limit: 500 } });
  expect((await send(apis[0], 50, 'small')).status).toBe(200);
  expect((await send(apis[0], 1, 'small')).json?.['detail']).toContain('agent small');
  expect((await send(apis[0], 460, 'big')).status).toBe(200);
  expect(code(await send(apis[0], 1, 'big'))).toBe('429 rate_limited');
  // The organization's limit is reached; the agent's own limit is not.
  await set('small', 1000);
  expect((await send(apis[0], 5, 'small')).status).toBe(200);
  await landed(515);
  const list = await call(apis[0], 'GET', `/orgs/${org}/budget/agents`, { headers: asOrg() });
  expect(list.json?.['data']).toMatchObject([
    { agent_id: 'small', tokens: { used: 55, hard_limit: 1000, percentage: 5.5, status: 'ok' } },
  ]);
});

test('an overage budget admits events until it is spent, then 402', async () => {
  await put({ tokens: { hard_limit: 100 } });
  await call(apis[0], 'PATCH', `/admin/orgs/${org}`, { headers: asOperator, body: { overage_budget_usd: 1 } });
  await send(apis[0], 100);
  expect((await send(apis[0], 1, undefined, { cost_usd: 0.6 })).status).toBe(200);
  expect((await send(apis[0], 1, undefined, { cost_usd: 0.6 })).status).toBe(200);
  expect(code(await send(apis[0], 1))).toBe('402 payment_required');
  await call(apis[0], 'PATCH', `/admin/orgs/${org}`, { headers: asOperator, body: { overage_budget_usd: null } });
  expect(code(await send(apis[0], 1))).toBe('429 rate_limited');
});

test('crossed limits are reported once, a soft one under both event names', async () => {
  await put({ tokens: { soft_limit: 80, hard_limit: 100 } });
  await send(apis[0], 85);
  await landed(85);
  await eventually(async () => (await told()).length >= 2, { what: 'the soft limit told' });
  await send(apis[0], 20);
  await landed(105);
  await eventually(async () => (await told()).some(({ event }) => event === 'budget.hard_exceeded'), {
    what: 'the hard limit told',
  });
  const all = (await told()).map(({ event, payload }) => [
    event,
    (JSON.parse(payload) as { percent?: number }).percent,
  ]);
  expect(all).toEqual([
    ['cost.threshold_breach', 80],
    ['budget.threshold_breach', 80],
    ['budget.hard_exceeded', undefined],
  ]);
  await service.killWorker();
  await service.startWorker();
  await put({ tokens: { hard_limit: 101 } });
  await eventually(async () => (await told()).length > all.length, { what: 'the moved limit told' });
  expect((await told()).slice(all.length).map(({ event }) => event)).toEqual(['budget.hard_exceeded']);
});

test('a threshold that equals the soft limit is reported once', async () => {
  await put({ tokens: { soft_limit: 80, hard_limit: 100 } });
  const alerts = { channels: ['email'], thresholds: [{ resource: 'tokens', percent: 80, severity: 'critical' }] };
  expect((await call(apis[0], 'POST', `/orgs/${org}/budget/alerts`, { headers: asOrg(), body: alerts })).status).toBe(
    201,
  );
  await send(apis[0], 85);
  await landed(85);
  expect(code(await send(apis[0], 20))).toBe('200');
  await eventually(async () => (await told()).some(({ event }) => event === 'budget.hard_exceeded'), {
    what: 'the hard limit told',
  });
  const events = (await told()).map(({ event, payload }) => [
    event,
    (JSON.parse(payload) as { severity?: string }).severity,
  ]);
  expect(events.toSorted()).toEqual([
    ['budget.hard_exceeded', undefined],
    ['budget.threshold_breach', 'critical'],
    ['cost.threshold_breach', 'critical'],
  ]);
});
