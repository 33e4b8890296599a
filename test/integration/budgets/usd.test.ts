// Limits in USD: what an organization or an agent may spend. Costs are sums of exact decimals, prices
// of the organization count, and a call through the gateway reserves its price before it is made.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import type { TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { type BudgetAnswer, code, type SendOptions, TestOrg } from './a_budget.ts';

let service: TestService;
let upstream: ModelServer;
let api: TestApi;

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({ api: { llmUrl: upstream.url }, worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
}, 60_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});

const costing = (cost_usd: number | string, more: SendOptions = {}): SendOptions => ({
  ...more,
  attributes: { cost_usd },
});
const spent = (org: TestOrg, used: number): Promise<void> =>
  eventually(async () => (await org.budget(api)).cost_usd.used === used, { what: `${used} USD`, withinMs: 30_000 });

test('the call after the one that reached a limit in USD is rejected, and use is the exact sum of the costs', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { cost_usd: { soft_limit: 0.2, hard_limit: 0.3 } });
  const answers = [];
  for (let i = 0; i < 4; i++) answers.push(await org.send(api, 1, costing(0.1)));
  expect(answers.map(code)).toEqual(['200', '200', '200', '429 rate_limited']);
  const refused = answers[3];
  expect(refused?.json?.['detail']).toContain('The hard limit of the organization on cost_usd (0.3) is reached');
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(refused?.headers.get('x-quota-cost-usd-status')).toBe('hard_exceeded');
  await spent(org, 0.3);
  expect((await org.budget(api)).cost_usd).toEqual({
    used: 0.3,
    soft_limit: 0.2,
    hard_limit: 0.3,
    percentage: 100,
    status: 'hard_exceeded',
  });
  await org.limit([api], { cost_usd: { hard_limit: null } });
  expect((await org.send(api, 1, costing(0.1))).status).toBe(200);
});

test('with an overage budget, use goes on past a limit in USD until the overage is spent, then 402', async () => {
  const org = await TestOrg.make([api], { overage_budget_usd: 0.5 });
  await org.limit([api], { cost_usd: { hard_limit: 1 } });
  const codes = [];
  for (let i = 0; i < 4; i++) codes.push(code(await org.send(api, 1, costing(0.5))));
  expect(codes).toEqual(['200', '200', '200', '402 payment_required']);
});

test('the own limit of an agent in USD replaces that of the organization for its events', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { cost_usd: { hard_limit: 0.1 } });
  expect(await org.limitAgent(api, 'premium', { hard_limit: 0.25 }, 'cost_usd')).toMatchObject({ status: 201 });
  expect((await org.send(api, 1, costing(0.2, { agent_id: 'premium' }))).status).toBe(200);
  expect(code(await org.send(api, 1, costing(0.01)))).toBe('429 rate_limited');
  expect((await org.send(api, 1, costing(0.2, { agent_id: 'premium' }))).status).toBe(200);
  expect(code(await org.send(api, 1, costing(0.01, { agent_id: 'premium' })))).toBe('429 rate_limited');
  await spent(org, 0.4);
  const listed = await org.call(api, 'GET', `/orgs/${org.id}/budget/agents`);
  expect(listed.json?.['data']).toMatchObject([
    {
      agent_id: 'premium',
      tokens: { used: 2, hard_limit: null, status: 'ok' },
      cost_usd: { used: 0.4, hard_limit: 0.25, percentage: 160, status: 'hard_exceeded' },
    },
  ]);
});

test("the organization's own prices decide what a call costs against a limit", async () => {
  const org = await TestOrg.make([api]);
  const prices = [{ model: 'gpt-4o', input_usd_per_mtok: 1000, output_usd_per_mtok: 1000 }];
  expect((await org.call(api, 'PUT', `/orgs/${org.id}/prices`, { prices })).status).toBe(200);
  await org.limit([api], { cost_usd: { hard_limit: 0.2 } });
  const codes = [];
  for (let i = 0; i < 3; i++) codes.push(code(await org.send(api, 100)));
  expect(codes).toEqual(['200', '200', '429 rate_limited']);
});

test('a call through the gateway reserves what its prompt and max_tokens may cost until it has ended', async () => {
  const org = await TestOrg.make([api]);
  const prices = [{ model: 'gpt-4o-mini', input_usd_per_mtok: 0, output_usd_per_mtok: 1000 }];
  expect((await org.call(api, 'PUT', `/orgs/${org.id}/prices`, { prices })).status).toBe(200);
  await org.limit([api], { cost_usd: { hard_limit: 1 } });
  const answer = json(
    200,
    JSON.stringify({
      model: 'gpt-4o-mini',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 5, completion_tokens: 100, total_tokens: 105 },
    }),
  );
  let end = (): void => undefined;
  const reached = new Promise<void>((resolve) => {
    upstream.behave((res, request) => {
      end = () => {
        answer(res, request);
      };
      resolve();
    }, answer);
  });
  const ask = () =>
    org.call(api, 'POST', '/v1/chat/completions', {
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: 'Is it?' }],
      max_tokens: 1000,
    });
  const slow = ask();
  await reached;
  expect((await ask()).status).toBe(429);
  end();
  expect((await slow).status).toBe(200);
  expect((await ask()).status).toBe(200);
  await spent(org, 0.2);
});

test('preview and forecast name costs, and thresholds on costs are accepted', async () => {
  const org = await TestOrg.make([api]);
  for (const cost of [0.1, 0.2]) await org.send(api, 1, costing(cost, { agent_id: 'planner' }));
  await spent(org, 0.3);
  const preview = await org.call(api, 'GET', '/v1/budgets/preview?resource=cost_usd&hard_limit=0.1&agent_id=planner');
  expect(preview.json?.['data']).toMatchObject({
    hard_limit: 0.1,
    periods: [{ used: 0.3, beyond_limit: 0.2 }, {}, {}],
  });
  const forecast = await org.call(api, 'GET', '/v1/budgets/forecast');
  expect(forecast.json?.['data']).toMatchObject({ resources: [{}, {}, {}, { resource: 'cost_usd', used: 0.3 }] });
  const thresholds = [{ resource: 'cost_usd', percent: 50, severity: 'info' }];
  const set = await org.call(api, 'POST', `/orgs/${org.id}/budget/alerts`, { channels: ['email'], thresholds });
  expect(set.json?.['data']).toMatchObject({ thresholds });
});

test.each([
  [{ cost_usd: { hard_limit: 0.1234567890123 } }, 'cost_usd.hard_limit: must be an amount in USD from 0 to'],
  [{ cost_usd: { hard_limit: '5' } }, 'cost_usd.hard_limit: must be an amount in USD from 0 to'],
  [{ cost_usd: { soft_limit: 2.5, hard_limit: 2.4 } }, 'cost_usd.soft_limit: must be at most the hard limit (2.4)'],
])('PUT budget %j is rejected with the field', async (body, detail) => {
  const org = await TestOrg.make([api]);
  const refused = await org.call(api, 'PUT', `/orgs/${org.id}/budget`, body);
  expect(code(refused)).toBe('422 invalid_request');
  expect(refused.json?.['detail']).toContain(detail);
  expect((await org.budget(api)).cost_usd).toMatchObject({ hard_limit: null } satisfies Partial<
    BudgetAnswer['cost_usd']
  >);
});
