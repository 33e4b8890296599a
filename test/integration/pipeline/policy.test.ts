// An organization's policy reaches the pipeline: a limit on prompts that is set through the API
// applies to later events of that organization only, and a worker that starts later applies it from
// its first event.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { asUser, call, INGEST, ORG, startTestApi, type TestApi, tokenOf } from '../api/an_api.ts';

const LONG = 'one two three four five six seven eight nine ten '.repeat(20).trim();
let nats: TestNats;
let database: TestDatabase;
let client: ClickHouse;
let worker: TestWorker;
let api: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  database = await createTestDatabase();
  client = createClickHouse({ url: database.url });
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
  await worker.ready;
});

afterAll(async () => {
  worker.kill('SIGTERM');
  await worker.exited;
  await api.close();
  await client.close();
  await database.drop();
  await nats.remove();
});

let serial = 0;
/** Sends a model call with a long prompt and resolves with the length of the stored prompt. */
async function promptStored(): Promise<number> {
  const trace_id = `trace-${++serial}`;
  const body = {
    trace_id,
    request: { model: 'gpt-4o', messages: [{ role: 'user', content: LONG }] },
    response: { choices: [{ index: 0, message: { role: 'assistant', content: 'ten' }, finish_reason: 'stop' }] },
    outcome: 'success',
    duration_ms: 10,
  };
  const sent = await call(api, 'POST', `${INGEST}/chatcompletion`, { body });
  expect(sent.status).toBe(200);
  let prompt = '';
  await eventually(
    async () => {
      const answer = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
      const [span] = (answer.json?.['data'] as { spans: { prompt: string }[] } | undefined)?.spans ?? [];
      prompt = span?.prompt ?? '';
      return prompt !== '';
    },
    { what: `the prompt of ${trace_id}` },
  );
  return prompt.length;
}

const setMax = async (max_prompt_tokens: number | null) => {
  const headers = asUser(await tokenOf({ sub: 'user_local' }));
  expect((await call(api, 'PUT', `/orgs/${ORG}/policy`, { headers, body: { max_prompt_tokens } })).status).toBe(200);
};

test('prompts are truncated from the change of the policy on, by running workers and by those that start later', async () => {
  const whole = await promptStored();
  expect(whole).toBeGreaterThan(LONG.length);
  await setMax(20);
  await eventually(async () => (await promptStored()) < whole / 4, { what: 'a prompt that is cut' });
  worker.kill('SIGKILL');
  await worker.exited;
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
  await worker.ready;
  expect(await promptStored()).toBeLessThan(whole / 4);
  await setMax(null);
  await eventually(async () => (await promptStored()) === whole, { what: 'a whole prompt again' });
});
