// Slow calls of one organization through the gateway: a bound of that organization limits them, and
// other organizations are not affected.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { json, type ModelServer, silence, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { asKey, makeOtherOrg, OTHER_ORG } from '../api/a_cast.ts';
import { call, KEY, startTestApi, type TestApi } from '../api/an_api.ts';

const CALLS_MAX = 3;
const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] };
const completion = json(200, JSON.stringify({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }));

let nats: TestNats;
let upstream: ModelServer;
let api: TestApi;
let other: Record<string, string | undefined>;

beforeAll(async () => {
  [nats, upstream] = await Promise.all([startTestNats(), startModelServer()]);
  api = await startTestApi({ natsUrl: nats.url, llmUrl: upstream.url, gatewayCallsPerOrg: CALLS_MAX });
  other = asKey((await makeOtherOrg(api)).raw, OTHER_ORG);
}, 60_000);
afterAll(async () => {
  await api.close();
  await upstream.close();
  await nats.remove();
});
beforeEach(() => {
  upstream.reached.length = 0;
});

/**
 * Starts calls that the upstream does not answer, and resolves once all of them have reached it.
 */
async function hold(count: number, path: string): Promise<AbortController> {
  upstream.behave(silence);
  const callers = new AbortController();
  const { signal } = callers;
  const headers = { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' };
  const asked = path === '/v1/models' ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) };
  for (let i = 0; i < count; i++) fetch(api.url + path, { ...asked, signal }).catch(() => undefined);
  await eventually(() => upstream.reached.length === count, { what: `${count} calls at the upstream` });
  return callers;
}

test.each(['/v1/chat/completions', '/v1/models'])(
  "answers 429 with Retry-After beyond an organization's bound of concurrent calls on %s",
  async (path) => {
    const callers = await hold(CALLS_MAX, path);
    upstream.behave(completion);
    const refusal = await call(api, 'POST', '/v1/chat/completions', { body });
    expect([refusal.status, refusal.headers.get('retry-after'), refusal.json]).toEqual([
      429,
      '1',
      {
        error: {
          message: expect.stringContaining('too many calls under way') as string,
          type: 'rate_limit_error',
          code: 'rate_limited',
          param: null,
        },
      },
    ]);
    expect((await call(api, 'GET', '/v1/models')).status).toBe(429);
    expect((await call(api, 'POST', '/v1/chat/completions', { body, headers: other })).status).toBe(200);

    callers.abort();
    await eventually(async () => (await call(api, 'POST', '/v1/chat/completions', { body })).status === 200, {
      what: 'a call that finds a place after others have ended',
    });
  },
);

test('a rejected call does not count as concurrent', async () => {
  for (let i = 0; i <= CALLS_MAX; i++) {
    expect((await call(api, 'POST', '/v1/chat/completions', { raw: '{' })).status).toBe(422);
    expect((await call(api, 'GET', '/v1/models/..%2fadmin')).status).toBe(422);
  }
  upstream.behave(completion);
  expect((await call(api, 'POST', '/v1/chat/completions', { body })).status).toBe(200);
});
