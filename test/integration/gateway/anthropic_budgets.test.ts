// Hard limits of calls to Anthropic's API, seen by the official @anthropic-ai/sdk package: they are asked
// before a call, whole or streamed, and settled by what the call used, also when the caller aborts it.
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { events, json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import type { TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { TestOrg } from '../budgets/a_budget.ts';
import { LimitedKey } from '../keys/a_key.ts';
import { MESSAGE, MESSAGE_COST, question, STREAM } from './anthropic_shapes.ts';

const MODEL = 'claude-sonnet-4-5';
const MESSAGE_TOKENS = 1310 + 50;

let service: TestService;
let upstream: ModelServer;
let api: TestApi;

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({
    api: { anthropicUrl: upstream.url.replace('/v1', '') },
    worker: { SERVICE_TRACE_GRACE_MS: '50' },
  });
  api = await service.startApi();
}, 60_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.reached.length = 0;
});

const clientOf = (apiKey: string): Anthropic => new Anthropic({ apiKey, baseURL: api.url, maxRetries: 0 });
const clientFor = (org: TestOrg): Anthropic => {
  const { headers } = org.request(api, '');
  return clientOf(headers['X-Org-Api-Key'] ?? '');
};
const params = { model: MODEL, max_tokens: 100, messages: question };
const HOW = {
  whole: (client: Anthropic) => client.messages.create(params),
  streamed: (client: Anthropic) => client.messages.stream(params).finalMessage(),
} as const;
const answer = (how: keyof typeof HOW): void => {
  upstream.behave(how === 'whole' ? json(200, JSON.stringify(MESSAGE)) : events(STREAM));
};

/** Returns the error with which a call fails. */
async function failure(call: Promise<unknown>): Promise<InstanceType<typeof Anthropic.APIError>> {
  const error: unknown = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Anthropic.APIError)) throw new Error(`the call did not fail: ${String(error)}`);
  return error as InstanceType<typeof Anthropic.APIError>;
}

describe.each(['whole', 'streamed'] as const)('a call that is %s', (how) => {
  test.each([
    ['tokens', { tokens: { hard_limit: 2 * MESSAGE_TOKENS } }, 'x-quota-tokens-status'],
    ['cost_usd', { cost_usd: { hard_limit: 0.004 } }, 'x-quota-cost-usd-status'],
  ])(
    'after the one that crossed a hard limit on %s gets RateLimitError and reaches no upstream',
    async (_, limits, header) => {
      const org = await TestOrg.make([api]);
      await org.limit([api], limits);
      const client = clientFor(org);
      answer(how);
      for (let i = 0; i < 2; i++) expect((await HOW[how](client)).usage.output_tokens).toBe(50);
      const before = upstream.reached.length;
      const error = await failure(HOW[how](client));
      expect(error).toBeInstanceOf(Anthropic.RateLimitError);
      expect(error.error).toEqual({
        type: 'error',
        error: { type: 'rate_limit_error', message: expect.stringContaining('hard limit') as string },
        request_id: error.requestID,
      });
      expect(Number(error.headers?.get('retry-after'))).toBeGreaterThan(0);
      expect(error.headers?.get(header)).toBe('hard_exceeded');
      expect(upstream.reached).toHaveLength(before);
      await org.landed(api, 2 * MESSAGE_TOKENS);
      expect((await org.budget(api)).tokens.used).toBe(2 * MESSAGE_TOKENS);
      expect((await org.budget(api)).cost_usd.used).toBeCloseTo(2 * MESSAGE_COST, 12);
    },
  );

  test('beyond a spent overage budget gets 402 billing_error', async () => {
    const org = await TestOrg.make([api], { overage_budget_usd: 0 });
    await org.limit([api], { tokens: { hard_limit: 1 } });
    const client = clientFor(org);
    answer(how);
    await HOW[how](client);
    const error = await failure(HOW[how](client));
    expect([error.status, error.error]).toMatchObject([402, { type: 'error', error: { type: 'billing_error' } }]);
    expect(upstream.reached).toHaveLength(1);
  });

  test('with a key whose limits are reached gets typed errors', async () => {
    const key = await LimitedKey.make([api], {
      models: ['claude-*'],
      budget: { resource: 'cost_usd', hard_limit: 0.001, period: 'day' },
    });
    const client = clientOf(key.raw);
    answer(how);
    const forbidden = await failure(client.messages.create({ ...params, model: 'other-model' }));
    expect(forbidden).toBeInstanceOf(Anthropic.PermissionDeniedError);
    expect(forbidden.message).toContain('other-model');
    await HOW[how](client);
    const error = await failure(HOW[how](client));
    expect(error).toBeInstanceOf(Anthropic.RateLimitError);
    expect(Number(error.headers?.get('retry-after'))).toBeGreaterThan(0);
    await key.used(api, { tokens: MESSAGE_TOKENS });
  });
});

test('counting tokens uses no tokens of a key and counts as one of its requests', async () => {
  const key = await LimitedKey.make([api], {
    requests_per_minute: 3,
    tokens_per_minute: 10,
    budget: { resource: 'tokens', hard_limit: 1, period: 'day' },
  });
  const client = clientOf(key.raw);
  upstream.behave(json(200, '{"input_tokens":140000}'));
  for (let i = 0; i < 3; i++)
    expect(await client.messages.countTokens({ model: MODEL, messages: question })).toEqual({ input_tokens: 140_000 });
  const error = await failure(client.messages.countTokens({ model: MODEL, messages: question }));
  expect(error).toBeInstanceOf(Anthropic.RateLimitError);
  expect(upstream.reached).toHaveLength(3);
});

test('counting tokens of a model that the key does not allow is rejected', async () => {
  const key = await LimitedKey.make([api], { models: ['gpt-*'] });
  const error = await failure(clientOf(key.raw).messages.countTokens({ model: MODEL, messages: question }));
  expect(error).toBeInstanceOf(Anthropic.PermissionDeniedError);
  expect(upstream.reached).toHaveLength(0);
});

test('a stream that its caller aborts is settled by actual use, not by the reservation', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 5000 } });
  const client = clientFor(org);
  upstream.behave(events(STREAM.slice(0, 9), false), json(200, JSON.stringify(MESSAGE)));
  const stream = client.messages.stream({ ...params, max_tokens: 6000 });
  stream.on('error', () => undefined);
  const begun = new Promise<void>((resolve) => {
    stream.on('text', () => {
      resolve();
    });
  });
  await begun;
  // Nothing fits beside the reservation of the stream.
  await expect(client.messages.create(params)).rejects.toThrow(Anthropic.RateLimitError);
  stream.abort();
  await expect(stream.done()).rejects.toThrow(Anthropic.APIUserAbortError);
  await eventually(() => upstream.reached[0]?.gone === true, { what: 'the end of the call to the upstream' });
  await org.landed(api, 1310);
  expect((await org.budget(api)).tokens.used).toBeLessThan(1310 + 30);
  expect((await client.messages.create(params)).id).toBe('msg_01');
});

test('a client with retries gives up at once at a limit that lasts until the end of the period', async () => {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 1 } });
  answer('whole');
  await clientFor(org).messages.create(params);
  const { headers } = org.request(api, '');
  const retrying = new Anthropic({ apiKey: headers['X-Org-Api-Key'] ?? '', baseURL: api.url, maxRetries: 5 });
  const before = upstream.reached.length;
  expect(await failure(retrying.messages.create(params))).toBeInstanceOf(Anthropic.RateLimitError);
  expect(upstream.reached).toHaveLength(before);
});
