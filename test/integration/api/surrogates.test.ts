// Unpaired UTF-16 surrogates in request bodies: no answer contains one, neither as an escape nor as
// bytes that are not valid UTF-8, and ids are computed from the body as it was received.
import { createHash } from 'node:crypto';
import { isUtf8 } from 'node:buffer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { ADMIN_TOKEN, call, INGEST, KEY, ORG, type TestApi } from './an_api.ts';

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
}, 120_000);
afterAll(() => service.close());

/**
 * Surrogates as clients send them: a high one alone, a low one alone, two in the wrong order. PAIR
 * is a valid pair, which is one character.
 */
const LONE = '\ud800 \udc00 \ude00\ud83d';
const PAIR = '\u{1f600}';
const SOUND = '\ufffd \ufffd \ufffd\ufffd';

/** Returns the body of an answer after checking that its bytes are valid UTF-8. */
async function raw(
  path: string,
  init: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<string> {
  const headers = { 'X-Org-Api-Key': KEY, 'X-Org-Id': ORG, 'Content-Type': 'application/json', ...init.headers };
  const response = await fetch(api.url + path, { ...init, headers });
  const bytes = Buffer.from(await response.arrayBuffer());
  expect([path, isUtf8(bytes)]).toEqual([path, true]);
  return bytes.toString('utf8');
}

const hex16 = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);
const escapes = /(?<!\\)(?:\\\\)*\\ud[89a-f]/i;
function expectSound(path: string, text: string): void {
  expect([path, escapes.exec(text)?.[0]]).toEqual([path, undefined]);
  // Strict parsers can also read JSON that is nested in strings, such as prompts.
  expect([path, /\\ud[89a-f][0-9a-f]{2}/i.exec(text)?.[0]]).toEqual([path, undefined]);
}

test('events are answered with U+FFFD everywhere, under the ids of the body as received', async () => {
  const trace_id = 'trc_lone';
  const call1 = {
    request: {
      model: `gpt-4o-mini${LONE}`,
      messages: [{ role: 'user', content: `ask ${LONE} ${PAIR}`, [LONE]: LONE }],
    },
    response: {
      model: 'gpt-4o-mini',
      choices: [{ index: 0, message: { role: 'assistant', content: `say ${LONE}` }, finish_reason: 'stop' }],
    },
    duration_ms: 5,
    outcome: 'success',
    trace_id,
    tags: [`tag ${LONE}`],
    attributes: {
      [`name ${LONE}`]: [`value ${LONE}`, { deep: LONE }],
      agent_id: `agent ${LONE}`,
      session_id: `s${LONE}`,
      user_id: `u${LONE}`,
    },
  };
  const chain = {
    request: { model: 'gpt-4o-mini', messages: [] },
    response: { generations: [[{ text: LONE }]] },
    chain_name: `chain ${LONE}`,
    intermediate_steps: [[`look: ${LONE}`, `seen ${LONE}`]],
    duration_ms: 5,
    outcome: 'success',
    trace_id,
  };
  const answers = [
    await call(api, 'POST', `${INGEST}/chatcompletion`, { body: call1 }),
    await call(api, 'POST', `${INGEST}/chain`, { body: chain }),
    await call(api, 'POST', `${INGEST}/app`, {
      body: { events: [{ event_type: LONE, session_id: LONE, attributes: { [LONE]: LONE } }] },
    }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  const ids = answers.map(({ json }) => json?.['data'] as Record<string, unknown>);
  expect(ids[0]?.['event_id']).toBe(`evt_${hex16(JSON.stringify(call1))}`);
  expect(ids[2]?.['trace_id']).toBe(`trc_${hex16(LONE)}`);

  let tree = '';
  await eventually(
    async () => {
      tree = await raw(`/v1/traces/${trace_id}/tree`);
      return (JSON.parse(tree) as { data?: { spans?: unknown[] } }).data?.spans?.length === 3;
    },
    { what: 'the spans' },
  );
  const spans = (JSON.parse(tree) as { data: { spans: Record<string, unknown>[] } }).data.spans;
  expect(spans.map(({ span_id }) => span_id)).toContain(`spn_${hex16(`${JSON.stringify(chain)}:0`)}`);
  const [root] = spans.filter(({ source_format }) => source_format === 'chatcompletion');
  expect(root).toMatchObject({
    model: `gpt-4o-mini${SOUND}`,
    response: `say ${SOUND}`,
    tags: [`tag ${SOUND}`],
    attributes: { [`name ${SOUND}`]: [`value ${SOUND}`, { deep: SOUND }], agent_id: `agent ${SOUND}` },
  });
  expect(JSON.parse(String(root?.['prompt']))).toEqual([
    { role: 'user', content: `ask ${SOUND} ${PAIR}`, [SOUND]: SOUND },
  ]);
  for (const path of [
    `/v1/traces/${trace_id}/tree`,
    `/v1/traces/${trace_id}/timeline`,
    `/v1/traces/trc_${hex16(LONE)}/tree`,
    '/v1/traces',
    '/v1/sessions',
    '/v1/users',
    '/v1/spans/search?q=ask',
    '/v1/cost/summary?group_by=agent_id',
  ])
    expectSound(path, await raw(path));
  for (const format of ['json', 'ndjson'])
    expectSound(
      format,
      await raw(`/v1/traces/${trace_id}/export`, { method: 'POST', body: JSON.stringify({ format }) }),
    );
});

test('values of requests are answered with U+FFFD, also in rejections', async () => {
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const text = await raw(path, { method: 'POST', headers, body: JSON.stringify(body) });
    expectSound(path, text);
    return JSON.parse(text) as { data?: Record<string, unknown>; detail?: string };
  };
  const prompt = await post('/v1/prompts', { name: 'lone', template: `say ${LONE} ${PAIR}` });
  expect(prompt.data).toMatchObject({ name: 'lone' });
  expect(await raw('/v1/prompts/lone')).toContain(`say ${SOUND} ${PAIR}`);
  await post('/v1/datasets', { name: `set ${LONE}`, version: '1', items: [{ input: { [LONE]: LONE } }] });
  expect(await raw('/v1/datasets')).toContain(`set ${SOUND}`);
  await post(
    '/admin/orgs',
    { name: LONE, owner: { user_id: 'u', email: 'u@e.example' } },
    { Authorization: `Bearer ${ADMIN_TOKEN}` },
  );

  expect(
    (await post('/v1/traces/compare', { baseline_trace_id: LONE, candidate_trace_id: LONE })).detail,
  ).toBeDefined();
  expect((await post('/v1/judges', { [LONE]: 1, name: LONE })).detail).toBeDefined();
  expect((await post(`${INGEST}/custom`, { events: [{ [LONE]: 1, outcome: LONE }] })).detail).toBeDefined();
  expect((await post(`${INGEST}/${'\u{1f600}'.repeat(31)}a\u{1f600}\u{1f600}`, {})).detail).toBeDefined();
});

test('an escape in upper case, and one of a pair, are read as clients mean them', async () => {
  const body = '{"name":"cased","template":"\\uD83D\\uDE00 \\ud83d\\ude00 \\uD83D \\\\uD83D"}';
  await raw('/v1/prompts', { method: 'POST', body });
  const { data } = JSON.parse(await raw('/v1/prompts/cased')) as { data: { template: string } };
  expect(data.template).toBe(`${PAIR} ${PAIR} \ufffd \\uD83D`);
});
