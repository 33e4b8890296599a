// Limits of API keys: models, rates, budget, expiry and labels apply to ingest, OTLP, the gateway and,
// for the rate of requests, to reads. They are shown with the use of the key.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import type { TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { code, TestOrg } from '../budgets/a_budget.ts';
import { LimitedKey } from './a_key.ts';

let service: TestService;
let upstream: ModelServer;
let api: TestApi;

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({ api: { llmUrl: upstream.url }, worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
  upstream.behave(answering(10));
}, 60_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});

const answering = (tokens: number) =>
  json(
    200,
    JSON.stringify({
      model: 'gpt-4o-mini',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens },
    }),
  );
const ask = (key: LimitedKey, model = 'gpt-4o-mini') =>
  key.call(api, 'POST', '/v1/chat/completions', {
    model,
    messages: [{ role: 'user', content: 'Is it?' }],
    max_tokens: 10,
  });
const errorOf = ({ json: body }: { json: Record<string, unknown> | null }) => body?.['error'];

/** An OTLP export of one call of a model. */
const anExport = (model: string) => ({
  resourceSpans: [
    {
      scopeSpans: [
        {
          spans: [
            {
              traceId: crypto.randomUUID().replaceAll('-', ''),
              spanId: '00f067aa0ba902b7',
              name: 'chat',
              startTimeUnixNano: String(BigInt(Date.now() - 1000) * 1_000_000n),
              endTimeUnixNano: String(BigInt(Date.now()) * 1_000_000n),
              attributes: [
                { key: 'gen_ai.operation.name', value: { stringValue: 'chat' } },
                { key: 'gen_ai.request.model', value: { stringValue: model } },
                { key: 'gen_ai.usage.input_tokens', value: { intValue: '10' } },
                { key: 'gen_ai.usage.output_tokens', value: { intValue: '0' } },
              ],
            },
          ],
        },
      ],
    },
  ],
});

describe('models', () => {
  test('a model that matches no glob is rejected with its name by the gateway, ingest and OTLP', async () => {
    const key = await LimitedKey.make([api], { models: ['gpt-4o-mini', 'claude-*'] });
    const before = upstream.reached.length;
    expect((await ask(key)).status).toBe(200);
    const refused = await ask(key, 'gpt-4o');
    expect(refused.status).toBe(403);
    expect(errorOf(refused)).toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('gpt-4o;') as string,
    });
    expect(upstream.reached.length).toBe(before + 1);
    const sent = await key.send(api, 1);
    expect(code(sent)).toBe('403 forbidden');
    expect(sent.json?.['detail']).toBe('The API key may not use the model gpt-4o; it may use: gpt-4o-mini, claude-*');
    expect((await key.call(api, 'POST', '/v1/traces', anExport('claude-opus-4'))).status).toBe(200);
    expect((await key.call(api, 'POST', '/v1/traces', anExport('gpt-5'))).status).toBe(403);
  });

  test('events that name no model are admitted', async () => {
    const key = await LimitedKey.make([api], { models: ['gpt-4o-mini'] });
    const body = { events: [{ name: 'step', outcome: 'success' }] };
    expect((await key.call(api, 'POST', `/orgs/${key.org.id}/ingest/custom`, body)).status).toBe(200);
  });
});

describe('rates', () => {
  test('requests of every kind count, and the one above the rate gets 429 with Retry-After', async () => {
    const key = await LimitedKey.make([api], { requests_per_minute: 4 });
    expect((await key.send(api, 1)).status).toBe(200);
    expect((await ask(key)).status).toBe(200);
    expect((await key.call(api, 'POST', '/v1/traces', anExport('gpt-4o'))).status).toBe(200);
    expect((await key.call(api, 'GET', '/v1/budgets')).status).toBe(200);
    for (const refused of [
      await key.send(api, 1),
      await ask(key),
      await key.call(api, 'POST', '/v1/traces', anExport('gpt-4o')),
      await key.call(api, 'GET', '/v1/budgets'),
    ]) {
      expect(refused.status).toBe(429);
      const seconds = Number(refused.headers.get('retry-after'));
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThanOrEqual(61);
    }
    expect((await key.org.send(api, 1)).status).toBe(200);
    expect((await key.limit([api], { requests_per_minute: null })).status).toBe(200);
    expect((await key.send(api, 1)).status).toBe(200);
  });

  test('tokens within a minute count, those of calls under way included', async () => {
    const key = await LimitedKey.make([api], { tokens_per_minute: 100 });
    expect((await key.send(api, 60)).status).toBe(200);
    expect((await key.send(api, 60)).status).toBe(200);
    const refused = await key.send(api, 1);
    expect(code(refused)).toBe('429 rate_limited');
    expect(refused.json?.['detail']).toContain('at most 100 tokens within a minute');
    expect((await ask(key)).status).toBe(429);
    const other = await LimitedKey.make([api], { tokens_per_minute: 25 });
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await ask(other)).status);
    // Each call reserves its prompt and max_tokens while it lasts, and counts the 10 tokens that it used.
    expect(statuses).toEqual([200, 200, 200, 429]);
  });
});

describe('a budget', () => {
  test('in USD rejects the call after the one that reached it until the next day, and is shown with its use', async () => {
    const budget = { resource: 'cost_usd', hard_limit: 0.3, period: 'day' };
    const key = await LimitedKey.make([api], { budget });
    const codes = [];
    for (let i = 0; i < 4; i++) codes.push(code(await key.send(api, 1, { attributes: { cost_usd: 0.1 } })));
    expect(codes).toEqual(['200', '200', '200', '429 rate_limited']);
    const refused = await ask(key);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(86_400);
    await key.used(api, { period: 'day', tokens: 3, cost_usd: 0.3, percentage: 100, status: 'hard_exceeded' });
    expect(await key.listed(api)).toMatchObject({ budget, status: 'active' });
    expect((await key.org.send(api, 1)).status).toBe(200);
    await key.limit([api], { budget: { ...budget, hard_limit: 0.5 } });
    expect((await key.send(api, 1)).status).toBe(200);
  });

  test('in tokens counts calls through the gateway, and the use of other keys does not count', async () => {
    const key = await LimitedKey.make([api], { budget: { resource: 'tokens', hard_limit: 30, period: 'month' } });
    const other = await LimitedKey.make([api], {}, { org: key.org });
    expect((await other.send(api, 1000)).status).toBe(200);
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await ask(key)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    await key.used(api, { tokens: 30 });
    await other.used(api, { tokens: 1000, percentage: 0, status: 'ok' });
  });

  test('survives kill -9 of the worker: use is counted once', async () => {
    const key = await LimitedKey.make([api], { budget: { resource: 'tokens', hard_limit: 50, period: 'week' } });
    for (let i = 0; i < 3; i++) expect((await key.send(api, 10)).status).toBe(200);
    await service.killWorker();
    expect((await key.send(api, 20)).status).toBe(200);
    expect((await key.send(api, 1)).status).toBe(429);
    await service.startWorker();
    await key.used(api, { tokens: 50, status: 'hard_exceeded' });
    expect((await key.send(api, 1)).status).toBe(429);
  }, 60_000);
});

describe('expiry and labels', () => {
  test('an expired key is rejected with 401 and listed as expired', async () => {
    const key = await LimitedKey.make([api]);
    expect((await key.call(api, 'GET', '/v1/budgets')).status).toBe(200);
    await key.limit([api], { expires_at: new Date(Date.now() - 1000).toISOString() });
    expect((await key.call(api, 'GET', '/v1/budgets')).status).toBe(401);
    expect((await key.send(api, 1)).status).toBe(401);
    expect((await key.listed(api))?.status).toBe('expired');
  });

  test('labels fill the user and the department of events that name none', async () => {
    const key = await LimitedKey.make([api], { labels: { user_id: 'ann', department: 'support' } });
    await key.send(api, 10, { attributes: { cost_usd: 1 } });
    await key.send(api, 10, { attributes: { cost_usd: 2, user_id: 'bob', department: 'sales' } });
    await ask(key);
    await eventually(
      async () => {
        const { json: body } = await key.org.call(api, 'GET', '/v1/cost/summary?group_by=department');
        const by = (body?.['data'] as { by_department: { department: string; cost_usd: number }[] }).by_department;
        return by.some((row) => row.department === 'sales') && by.some((row) => row.department === 'support');
      },
      { what: 'costs of both departments', withinMs: 30_000 },
    );
    await eventually(
      async () => {
        const { json: body } = await key.org.call(api, 'GET', '/v1/users');
        const users = body?.['data'] as { user_id: string; spans: number }[];
        const spans = (user_id: string) => users.find((user) => user.user_id === user_id)?.spans;
        return spans('ann') === 2 && spans('bob') === 1;
      },
      { what: 'the users of all three calls', withinMs: 30_000 },
    );
  });
});

describe('setting limits', () => {
  test('leaves out what is left out, clears null, and is audited', async () => {
    const key = await LimitedKey.make([api], { models: ['a*'], requests_per_minute: 5 });
    const answer = await key.limit([api], { requests_per_minute: null, tokens_per_minute: 7 });
    expect(answer.json?.['data']).toMatchObject({ models: ['a*'], requests_per_minute: null, tokens_per_minute: 7 });
    await eventually(
      async () => {
        const { json: body } = await key.org.call(api, 'GET', `/orgs/${key.org.id}/audit-log?action=api_key.update`);
        return JSON.stringify(body?.['data']).includes('tokens_per_minute');
      },
      { what: 'the audit record', withinMs: 30_000 },
    );
  });

  test.each([
    [{ models: [] }, 'models'],
    [{ requests_per_minute: 0 }, 'requests_per_minute'],
    [{ tokens_per_minute: 1.5 }, 'tokens_per_minute'],
    [{ budget: { resource: 'storage_mb', hard_limit: 1, period: 'day' } }, 'budget'],
    [{ budget: { resource: 'cost_usd', hard_limit: 1, period: 'year' } }, 'budget.period'],
    [{ expires_at: 'soon' }, 'expires_at'],
    [{ labels: { team: 'x' } }, 'labels'],
    [{ quota: 5 }, 'quota'],
  ])('%j is rejected with 422 and the field', async (limits, field) => {
    const key = await LimitedKey.make([api]);
    const refused = await key.limit([api], limits);
    expect(code(refused)).toBe('422 invalid_request');
    expect(refused.json?.['detail']).toContain(field);
  });

  test('a key with limits can neither change limits nor create keys', async () => {
    const key = await LimitedKey.make([api], { requests_per_minute: 100 });
    const path = `/orgs/${key.org.id}/api-keys`;
    expect(code(await key.call(api, 'PATCH', `${path}/${key.id}`, { requests_per_minute: null }))).toBe(
      '403 forbidden',
    );
    expect(code(await key.call(api, 'POST', path, { name: 'free', scopes: ['*'] }))).toBe('403 forbidden');
  });

  test('an unknown key is 404', async () => {
    const org = await TestOrg.make([api]);
    const refused = await org.call(api, 'PATCH', `/orgs/${org.id}/api-keys/ak_none`, { requests_per_minute: 1 });
    expect(code(refused)).toBe('404 api_key_not_found');
  });
});
