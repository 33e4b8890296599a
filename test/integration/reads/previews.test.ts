// Previews of traces: the beginnings of their texts, their first error, models and verdicts.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { previewTraces } from '../../../api/telemetry/traces/previews.ts';
import { type Preview, previewsQuery } from '../../../api/telemetry/traces/preview_schema.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';

const NOW = Date.parse('2026-03-01T00:00:00Z');
const signal = new AbortController().signal;
const chat = (...said: [string, string][]): string =>
  JSON.stringify(said.map(([role, content]) => ({ role, content })));
const at = (seconds: number, lasts = 1) => ({
  started_at: NOW + seconds * 1000,
  ended_at: NOW + (seconds + lasts) * 1000,
});
const LONG = 'word '.repeat(30_000);

const SPANS: Span[] = [
  aSpan({ trace_id: 'plain', ...at(0), prompt: 'Where is  my\nsofa?', response: 'On its way.', model: 'o3' }),
  aSpan({ trace_id: 'turns', ...at(10, 9), kind: 'app', model: '', outcome: 'error', prompt: '', response: '' }),
  aSpan({
    trace_id: 'turns',
    parent_span_id: 'p',
    ...at(11),
    model: 'gpt-4o',
    prompt: chat(['system', 'Be kind'], ['user', 'Refund me'], ['user', 'Now']),
    response: 'Let me look',
  }),
  aSpan({
    trace_id: 'turns',
    parent_span_id: 'p',
    ...at(12),
    kind: 'tool',
    name: 'pay_back',
    model: '',
    outcome: 'error',
    prompt: '',
    response: '',
    attributes: { error_message: 'payment declined' },
  }),
  aSpan({
    trace_id: 'turns',
    parent_span_id: 'p',
    ...at(14),
    model: 'o3',
    prompt: chat(['user', 'Refund me'], ['assistant', 'Let me look'], ['tool', 'declined']),
    response: 'It was declined',
  }),
  aSpan({ trace_id: 'long', ...at(100_000), prompt: chat(['user', 'Short'], ['assistant', LONG]), response: LONG }),
  aSpan({ trace_id: 'huge', ...at(100_001), prompt: chat(['user', LONG]), response: '' }),
  aSpan({ trace_id: 'plain_long', ...at(100_002), prompt: LONG, response: '😀'.repeat(500), outcome: 'timeout' }),
  aSpan({ trace_id: 'foreign', org_id: 'org_b', ...at(3), prompt: 'secret', response: 'secret' }),
];

let store: TestStore;
beforeAll(async () => {
  store = await openTestStore();
  await store.landSpans(SPANS.slice(0, 5));
  await store.moveTexts();
  await store.landSpans(SPANS.slice(5));
  await store.landTraces(tracesOf(SPANS).map((state) => ({ state, version: 1, sign: 1 })));
  await store.client.execute({
    name: 'fill',
    sql: `INSERT INTO judge_scores (org_id, judge_id, eval_id, trace_id, judge_version, judge_name, started_at, score, verdict, reason, scored_at) VALUES
      ('org_a', 'judge_1', '', 'plain', 1, 'Old name', '2026-03-01 00:00:00', 0.1, 'fail', '', '2026-03-01 00:01:00'),
      ('org_a', 'judge_1', '', 'plain', 2, 'Kind', '2026-03-01 00:00:00', 0.9, 'pass', '', '2026-03-01 00:00:30'),
      ('org_a', 'judge_2', 'eval_1', 'plain', 1, 'Short', '2026-03-01 00:00:00', NULL, 'error', '', '2026-03-01 00:02:00'),
      ('org_b', 'judge_9', '', 'plain', 1, 'Foreign', '2026-03-01 00:00:00', 0, 'fail', '', '2026-03-01 00:03:00')`,
    timeoutMs: 10_000,
  });
});
afterAll(() => store.close());

const previews = (query: Record<string, string>, orgId = 'org_a'): Promise<Preview[]> =>
  previewTraces(store.client, orgId, previewsQuery.parse(query), signal);

it('a preview has the first message of the user, the last answer, the first error, models and newest verdicts', async () => {
  expect(await previews({ trace_ids: 'turns,plain' })).toEqual([
    {
      trace_id: 'turns',
      user_text: 'Refund me',
      answer: 'It was declined',
      error: { name: 'pay_back', message: 'payment declined' },
      models: ['gpt-4o', 'o3'],
      verdicts: [],
    },
    {
      trace_id: 'plain',
      user_text: 'Where is my sofa?',
      answer: 'On its way.',
      error: null,
      models: ['o3'],
      verdicts: [
        { judge_id: 'judge_1', name: 'Kind', verdict: 'pass', score: 0.9 },
        { judge_id: 'judge_2', name: 'Short', verdict: 'error', score: null },
      ],
    },
  ]);
});

it('texts of a preview have at most 240 characters, and long prompts are read in part', async () => {
  const [long, huge, plain] = await previews({ trace_ids: 'long,huge,plain_long', fields: 'user_text,answer,error' });
  expect(long).toMatchObject({ user_text: 'Short', error: null });
  expect(long?.answer).toBe(LONG.slice(0, 240));
  expect(huge).toEqual({ trace_id: 'huge', user_text: LONG.slice(0, 240), answer: null, error: null });
  expect(Array.from(plain?.user_text ?? '')).toHaveLength(240);
  expect(Array.from(plain?.answer ?? '')).toHaveLength(240);
  expect(plain?.error).toMatchObject({ name: 'gpt-4o' });
});

it('a preview has only the fields that are asked for', async () => {
  expect(await previews({ trace_ids: 'plain', fields: 'models' })).toEqual([{ trace_id: 'plain', models: ['o3'] }]);
  expect(await previews({ trace_ids: 'turns', fields: 'verdicts' })).toEqual([{ trace_id: 'turns', verdicts: [] }]);
});

it('traces that the organization does not have are left out', async () => {
  expect(await previews({ trace_ids: 'foreign,nobody' })).toEqual([]);
  expect((await previews({ trace_ids: 'foreign' }, 'org_b')).map(({ user_text }) => user_text)).toEqual(['secret']);
});

it.each([[''], [Array.from({ length: 51 }, (_, n) => `t${n}`).join(',')]])(
  'a request without ids, or with more than 50, is rejected',
  (trace_ids) => {
    expect(previewsQuery.safeParse({ trace_ids }).error?.issues[0]?.message).toBe('must be 1 to 50 trace ids');
  },
);
