// Messages in log records: they become the prompt and the response of their span wherever a span is
// read, whichever arrives first, and across a crash of the worker.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  anyValue,
  asProtobuf,
  exportOf,
  keyValues,
  logsAsProtobuf,
  type OtlpObject,
  otlpSpan,
} from '../../support/otlp.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

type Data = Record<string, unknown>;

let service: TestService;
let api: TestApi;
/** Judges of the prompt and of the response. */
let judges: string[];

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50', SERVICE_TRACE_IDLE_MS: '1500' } });
  api = await service.startApi();
  judges = [await aJudge('prompt', 'Where is the'), await aJudge('response', 'is here.')];
}, 120_000);
afterAll(async () => {
  await service.close();
});

async function post(path: string, body: Buffer): Promise<void> {
  const headers = { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/x-protobuf' };
  const { status } = await fetch(api.url + path, { method: 'POST', headers, body: new Uint8Array(body) });
  expect(status).toBe(200);
}

const CALL = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.request.model': 'gpt-4o-mini',
  'gen_ai.usage.input_tokens': 100,
  'gen_ai.usage.output_tokens': 20,
};
const PARENT = { parentSpanId: 'f'.repeat(16) };
const SPAN_ID = 'eee19b7ec3000001';

/** Resolves with the score that a rule gave a trace; null while there is none. */
async function scoreOf(traceId: string, judge_id: string): Promise<number | null> {
  const text = await service.database.run(
    `SELECT score FROM judge_scores FINAL WHERE trace_id = '${traceId}' AND judge_id = '${judge_id}' AND eval_id = '' FORMAT TSV`,
  );
  return text.trim() === '' ? null : Number(text);
}

/** Creates a judge of one text, and resolves once the worker judges with it. */
async function aJudge(field: 'prompt' | 'response', value: string): Promise<string> {
  const rule = { type: 'contains', fields: [field], value };
  const body = { name: `a ${field}`, kind: 'deterministic', rule, threshold: { pass: 1 } };
  const made = await call(api, 'POST', '/v1/judges', { body });
  expect([made.status, made.text]).toEqual([201, made.text]);
  const { judge_id } = made.json?.['data'] as { judge_id: string };
  // A probe that arrives before the worker knows the judge is never judged; a score lands after its span.
  const probes: string[] = [];
  await eventually(
    async () => {
      const traceId = `${field === 'prompt' ? 'b' : 'c'}${(0xb0000 + probes.length).toString(16).padStart(31, '0')}`;
      probes.push(traceId);
      await post('/v1/traces', asProtobuf(exportOf([otlpSpan(1, CALL, { traceId })])));
      await spanOf(traceId, 1);
      const scores = await Promise.all(probes.map((probe) => scoreOf(probe, judge_id)));
      return scores.some((score) => score !== null);
    },
    { what: 'a judged probe' },
  );
  return judge_id;
}

function message(traceId: string, index: number, name: string, body: OtlpObject): OtlpObject {
  return {
    traceId,
    spanId: SPAN_ID,
    timeUnixNano: (BigInt(Date.now() - 500 + index) * 1_000_000n).toString(),
    body: anyValue(body),
    attributes: keyValues({ 'event.name': name }),
  };
}

/** Returns the messages of a call about `word`. */
const messagesOf = (traceId: string, word: string): OtlpObject[] => [
  message(traceId, 0, 'gen_ai.system.message', { content: 'Be brief.' }),
  message(traceId, 1, 'gen_ai.user.message', { content: `Where is the ${word}?` }),
  message(traceId, 2, 'gen_ai.choice', {
    index: 0,
    finish_reason: 'stop',
    message: { content: `The ${word} is here.` },
  }),
];
const promptOf = (word: string): string =>
  JSON.stringify([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: `Where is the ${word}?` },
  ]);

async function spanOf(traceId: string, rows: number): Promise<Data> {
  let spans: Data[] = [];
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', `/v1/traces/${traceId}/tree`);
      spans = ((json?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
      return spans.length >= rows;
    },
    { what: `the trace ${traceId}` },
  );
  return spans.find((span) => span['span_id'] === SPAN_ID) ?? {};
}

describe.each([
  ['the span arrives first', 'lighthouse', 'a1'],
  ['the messages arrive first', 'windmill', 'a2'],
])('%s', (when, word, hex) => {
  const traceId = hex.repeat(16);
  const texts = { prompt: promptOf(word), response: `The ${word} is here.` };

  beforeAll(async () => {
    const sends = [
      () => post('/v1/traces', asProtobuf(exportOf([otlpSpan(1, CALL, { traceId, ...PARENT })]))),
      () => post('/v1/logs', logsAsProtobuf(messagesOf(traceId, word))),
    ];
    for (const send of when === 'the span arrives first' ? sends : sends.toReversed()) await send();
    await spanOf(traceId, 4);
  });

  test('the tree, the span, its whole texts and the export show them', async () => {
    expect(await spanOf(traceId, 4)).toMatchObject({ ...texts, input_tokens: 100 });
    const span = await call(api, 'GET', `/v1/traces/${traceId}/spans/${SPAN_ID}`);
    expect(span.json?.['data']).toMatchObject({ ...texts, text_state: 'here' });
    const whole = await call(api, 'GET', `/v1/traces/${traceId}/spans/${SPAN_ID}/texts/prompt`);
    expect(whole.text).toBe(texts.prompt);
    const file = await call(api, 'POST', `/v1/traces/${traceId}/export`, {
      body: { format: 'json', include_prompts: true, include_responses: true },
    });
    const { spans } = JSON.parse(file.text) as { spans: Data[] };
    expect(spans.find((one) => one['span_id'] === SPAN_ID)).toMatchObject(texts);
  });

  test('a search finds the span, once, with its texts and model', async () => {
    let hits: Data[] = [];
    await eventually(
      async () => {
        hits = (await call(api, 'GET', `/v1/spans/search?q=${word}`)).json?.['data'] as Data[];
        return hits.length > 0;
      },
      { what: 'the hit' },
    );
    expect(hits).toMatchObject([{ trace_id: traceId, span_id: SPAN_ID, model: 'gpt-4o-mini', ...texts }]);
    const snippets = await call(api, 'GET', `/v1/spans/search?q=${word}&snippets=true`);
    expect(snippets.json?.['data']).toMatchObject([{ span_id: SPAN_ID, name: 'span 1' }]);
  });

  test('judges read them, live and in an eval', async () => {
    for (const judge_id of judges) {
      await eventually(async () => (await scoreOf(traceId, judge_id)) !== null, { what: 'the live score' });
      expect(await scoreOf(traceId, judge_id)).toBe(1);
      const made = await call(api, 'POST', '/v1/evals', { body: { judge_id, trace_ids: [traceId], async: false } });
      const { eval_id } = made.json?.['data'] as { eval_id: string };
      const lines = await call(api, 'GET', `/v1/evals/${eval_id}/scores`);
      expect(JSON.parse(lines.text)).toMatchObject({ trace_id: traceId, score: 1 });
    }
  });
});

test('a worker that is killed between the span and its messages loses and doubles nothing', async () => {
  const traceId = 'a3'.repeat(16);
  const records = logsAsProtobuf(messagesOf(traceId, 'bridge'));
  await post('/v1/logs', records);
  await service.killWorker();
  await post('/v1/traces', asProtobuf(exportOf([otlpSpan(1, CALL, { traceId, ...PARENT })])));
  await post('/v1/logs', records);
  await service.startWorker();
  // When this later span has landed, the worker has processed everything before it.
  await post('/v1/traces', asProtobuf(exportOf([otlpSpan(7, {}, { traceId, ...PARENT })])));
  expect(await spanOf(traceId, 5)).toMatchObject({
    prompt: promptOf('bridge'),
    response: 'The bridge is here.',
    children: [expect.any(String), expect.any(String), expect.any(String)],
  });
});
