// Budgets of calls through the gateway: the gateway reserves before a call and settles after it,
// however the call ends.
import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { events, json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { TestOrg } from '../budgets/a_budget.ts';

type Data = Record<string, unknown>;

let service: TestService;
let upstream: ModelServer;
let api: TestApi;

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({ api: { llmUrl: upstream.url }, worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
});
afterAll(async () => {
  await service.close();
  await upstream.close();
});

const using = (tokens: number) =>
  json(
    200,
    JSON.stringify({
      model: 'gpt-4o-mini',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens },
    }),
  );

let questions = 0;
const body = (more: Data = {}): Data => ({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: `question ${++questions}` }],
  max_tokens: 10,
  ...more,
});
const ask = (org: TestOrg, more: Data = {}, headers: Record<string, string> = {}): Promise<Answer> =>
  org.call(api, 'POST', '/v1/chat/completions', body(more), headers);

test('the call after the one that crossed a hard limit is rejected before it is made', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 300 } });
  upstream.behave(using(100));
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) statuses.push((await ask(org)).status);
  expect(statuses).toEqual([200, 200, 200, 429, 429]);
  const before = upstream.reached.length;
  const refused = await ask(org, { stream: true });
  expect(refused.json).toMatchObject({ error: { type: 'rate_limit_error', code: 'rate_limited', param: null } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(refused.headers.get('x-quota-tokens-status')).toBe('hard_exceeded');
  expect(upstream.reached).toHaveLength(before);
  await org.landed(api, 300);
  expect((await org.budget(api)).tokens.used).toBe(300);
  expect((await ask(org)).status).toBe(429);
});

test('the reservations of calls in flight count until the calls have ended', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 1000 } });
  let answer: () => void = () => undefined;
  const first = new Promise<void>((resolve) => {
    upstream.behave((res, reached) => {
      answer = () => {
        using(50)(res, reached);
      };
      resolve();
    }, using(50));
  });
  const slow = ask(org, { max_tokens: 2000 });
  await first;
  expect((await ask(org)).status).toBe(429);
  answer();
  expect((await slow).status).toBe(200);
  // The next call is admitted, because the first used far less than it had reserved.
  expect((await ask(org)).status).toBe(200);
  await org.landed(api, 100);
  expect((await org.budget(api)).tokens.used).toBe(100);
});

test('many concurrent senders exceed a limit by no more than the call that crosses it', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 20_000 } });
  upstream.behave(using(20));
  let made = 0;
  const lane = async () => {
    for (;;) {
      const { status } = await ask(org);
      if (status === 200) made++;
      else return;
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  // The last calls were rejected because of other callers' reservations; a single caller uses up
  // the rest.
  await lane();
  expect(made).toBe(1000);
  await org.landed(api, 20_000);
  expect((await org.budget(api)).tokens.used).toBe(20_000);
});

test('a stream that its caller drops is settled by actual use, not by the reservation', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 5000 } });
  upstream.behave(
    events(
      [`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'A long answer begins' } }] })}\n\n`],
      false,
    ),
    using(10),
  );
  const before = upstream.reached.length;
  const { url, headers } = org.request(api, '/v1/chat/completions');
  await new Promise<void>((resolve) => {
    const sent = request(
      url,
      { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' } },
      (res) => {
        res.once('data', () => {
          sent.destroy();
          resolve();
        });
        res.on('error', () => undefined);
      },
    );
    sent.on('error', () => undefined);
    sent.end(JSON.stringify(body({ stream: true, max_tokens: 6000 })));
  });
  await eventually(() => upstream.reached[before]?.gone === true, { what: 'the end of the call to the upstream' });
  await org.landed(api, 5);
  const { used } = (await org.budget(api)).tokens;
  expect(used).toBeLessThan(100);
  expect((await ask(org)).status).toBe(200);
});

test("an agent's own limit applies to its calls", async () => {
  const org = await TestOrg.make([api]);
  await org.limitAgent(api, 'agent_a', { hard_limit: 10 });
  upstream.behave(using(10));
  const asAgent = { 'X-Service-Agent-Id': 'agent_a' };
  await eventually(async () => (await ask(org, {}, asAgent)).status === 429, { what: "the agent's limit" });
  expect((await ask(org)).status).toBe(200);
});

test('a spent overage budget is 402', async () => {
  const org = await TestOrg.make([api], { overage_budget_usd: 0 });
  await org.limit([api], { tokens: { hard_limit: 1 } });
  upstream.behave(using(10));
  await ask(org);
  const answer = await ask(org);
  expect([answer.status, (answer.json?.['error'] as Data)['code'], (answer.json?.['error'] as Data)['type']]).toEqual([
    402,
    'payment_required',
    'insufficient_quota',
  ]);
});
