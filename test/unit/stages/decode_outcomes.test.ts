// The decode stage gives one outcome for each input, whatever an event of any format holds.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { SourceFormat } from '../../../schemas/codec.ts';
import {
  anthropicToolUse,
  customTool,
  langChainRun,
  openAiAnswer,
  openAiToolCall,
  pageView,
  withField,
} from '../formats/payloads.ts';
import { decodeOne, logged, stage } from './decoding.ts';

it.each([
  [{ attributes: { session_id: 's1', user_id: 'u1' } }, 's1', 'u1'],
  [{ attributes: { 'session.id': 's2', 'enduser.id': 'u2' } }, 's2', 'u2'],
  [{ attributes: { 'user.id': 42 } }, '', '42'],
  [{ attributes: { user_id: 'u'.repeat(513), session_id: { a: 1 } } }, '', ''],
])('session and user of a span are read from its attributes: %j', (over, session_id, user_id) => {
  expect(decodeOne('chatcompletion', openAiAnswer(over))).toMatchObject({ session_id, user_id });
});

it('a span takes both its times as they are given and keeps a duration that contradicts them as an attribute', () => {
  const span = decodeOne(
    'custom',
    customTool({ started_at: '2026-01-01T00:00:00Z', ended_at: '2026-01-01T00:00:01Z' }),
  );
  expect([span.started_at, span.ended_at]).toEqual([
    Date.parse('2026-01-01T00:00:00Z'),
    Date.parse('2026-01-01T00:00:01Z'),
  ]);
  expect(span.attributes['duration_ms']).toBe(240);
});

it('a span that names itself as its parent becomes a root', () => {
  expect(decodeOne('custom', customTool({ span_id: 'a', parent_span_id: 'a' })).parent_span_id).toBe('');
  expect(decodeOne('custom', customTool({ span_id: 'a', parent_span_id: 'b' }))).toMatchObject({
    span_id: 'a',
    parent_span_id: 'b',
  });
});

it('every text of a span is well-formed Unicode, so that the store can hold it', () => {
  const lone = 'a\ud800b';
  const span = decodeOne(
    'custom',
    customTool({
      name: lone,
      tags: [lone],
      attributes: { agent_id: lone, department: lone, session_id: lone, input: lone, output: lone },
    }),
  );
  expect([
    span.name,
    ...span.tags,
    span.agent_id,
    span.department,
    span.session_id,
    span.prompt,
    span.response,
  ]).toEqual(Array.from({ length: 7 }, () => 'a\ufffdb'));
});

it('a __proto__ key in an event changes no object', () => {
  const body =
    '{"name":"x","outcome":"success","__proto__":{"kind":"evil"},"attributes":{"__proto__":{"polluted":true}}}';
  const outcomes = stage.run([{ ...logged('custom', {}), body }]);
  expect(outcomes[0]?.kind).toBe('emit');
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

it.each([
  ['no JSON', 'custom', '{'],
  ['another shape', 'chatcompletion', '{"request":{}}'],
  ['a scalar', 'custom', '7'],
  ['a call of the gateway that is none', 'gateway', '{}'],
] as const)('the decode stage turns %s into a dead letter with its reason', (_name, format, body) => {
  const [outcome] = stage.run([{ ...logged('custom', {}), format, body }]);
  expect(outcome).toMatchObject({ kind: 'dead', reason: 'decode_failed' });
  expect(outcome?.kind === 'dead' && outcome.detail.length > 0).toBe(true);
});

it('the detail of a dead letter names the invalid field', () => {
  expect(stage.run([logged('chatcompletion', openAiAnswer({ outcome: 'odd' }))])[0]).toMatchObject({
    detail: expect.stringContaining('outcome') as unknown,
  });
});

it('the decode stage gives one outcome for each input, in order, for any input', () => {
  const body = fc.oneof(
    fc.json(),
    fc.string(),
    fc
      .constantFrom(openAiToolCall(), openAiAnswer(), anthropicToolUse(), langChainRun(), customTool(), pageView())
      .map((event) => JSON.stringify(event)),
  );
  const format = fc.constantFrom<SourceFormat>(
    'chatcompletion',
    'messages',
    'chain',
    'custom',
    'app',
    'otlp',
    'gateway',
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(format, body), { maxLength: 20 }), (pairs) => {
      const batch = pairs.map(([one, text], index) => ({ ...logged('custom', {}, index), format: one, body: text }));
      const outcomes = stage.run(batch);
      expect(outcomes).toHaveLength(batch.length);
      for (const [index, outcome] of outcomes.entries()) {
        expect(['emit', 'dead']).toContain(outcome.kind);
        if (outcome.kind === 'emit') expect(outcome.out).toMatchObject({ partition: 3, log_seq: 17, log_index: index });
      }
    }),
  );
});

it('the decode stage gives the same spans for the same event', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (attributes) => {
      const event = {
        name: 'step',
        outcome: 'success',
        attributes: { ...attributes, cost_usd: 1, sandbox_seconds: 0 },
      };
      expect(stage.run([logged('custom', event)])).toEqual(stage.run([logged('custom', event)]));
    }),
  );
});

it('numbers at the upper bounds of a format fit the columns of the store', () => {
  const most = { prompt_tokens: 1_000_000_000, completion_tokens: 1_000_000_000 };
  const all = {
    input_tokens: 1_000_000_000,
    cache_read_input_tokens: 1_000_000_000,
    cache_creation_input_tokens: 1_000_000_000,
    output_tokens: 1_000_000_000,
  };
  const spans = [
    decodeOne(
      'chatcompletion',
      withField(openAiAnswer({ attributes: { cost_usd: 999_999 } }), ['response', 'usage'], most),
    ),
    decodeOne('messages', withField(anthropicToolUse(), ['response', 'usage'], all)),
  ];
  for (const span of spans) {
    expect(Math.max(span.input_tokens, span.output_tokens, span.cached_input_tokens)).toBeLessThan(2 ** 32);
    expect(span.cost_pico_usd).toBeLessThan(10n ** 18n);
  }
});
