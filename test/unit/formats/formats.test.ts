// The shapes of the ingest formats: what real SDKs send is accepted as it is, and malformed input
// is rejected by field.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  BATCH_EVENTS_MAX,
  checkEvent,
  EVENT_SCHEMAS,
  isIngestFormat,
  splitBody,
  type IngestFormat,
} from '../../../schemas/formats/formats.ts';
import {
  anthropicToolUse,
  customTool,
  langChainRun,
  openAiAnswer,
  openAiToolCall,
  pageView,
  withField,
} from './payloads.ts';

const REAL: [string, IngestFormat, Record<string, unknown>][] = [
  ['a tool call of the openai package', 'chatcompletion', openAiToolCall()],
  ['a plain answer', 'chatcompletion', openAiAnswer()],
  ['an answer without usage', 'chatcompletion', withField(openAiAnswer(), ['response', 'usage'], null)],
  ['a failed call without a response', 'chatcompletion', openAiAnswer({ outcome: 'error', response: null })],
  ['a timed-out call', 'chatcompletion', withField(openAiAnswer({ outcome: 'timeout' }), ['response'], undefined)],
  [
    'a failed call with an error body',
    'chatcompletion',
    openAiAnswer({ outcome: 'error', response: { error: { message: 'overloaded' } } }),
  ],
  [
    'a backfilled call with times and no duration',
    'chatcompletion',
    withField(
      openAiAnswer({ started_at: '2026-01-01T00:00:00Z', ended_at: '2026-01-01T00:00:01Z' }),
      ['duration_ms'],
      undefined,
    ),
  ],
  [
    'nulls for what is optional',
    'chatcompletion',
    openAiAnswer({
      trace_id: null,
      parent_span_id: null,
      span_id: null,
      tags: null,
      attributes: null,
      started_at: null,
      ended_at: null,
    }),
  ],
  ['a tool use of the anthropic package', 'messages', anthropicToolUse()],
  ['a system prompt as a string', 'messages', withField(anthropicToolUse(), ['request', 'system'], 'Be brief.')],
  ['no system prompt', 'messages', withField(anthropicToolUse(), ['request', 'system'], undefined)],
  ['a LangChain run', 'chain', langChainRun()],
  ['a chain without steps', 'chain', withField(langChainRun(), ['intermediate_steps'], undefined)],
  ['a custom tool', 'custom', customTool()],
  ['a custom event by event_type alone', 'custom', { event_type: 'checkpoint', outcome: 'success' }],
  ['a cost as decimal text', 'custom', customTool({ attributes: { cost_usd: '0.000000000001' } })],
  ['a page view', 'app', pageView()],
  ['an app event of an unknown user', 'app', pageView({ user_id: null, timestamp: null })],
];

const BAD: [IngestFormat, Record<string, unknown>, (string | number)[], unknown, string][] = [
  ['chatcompletion', openAiAnswer(), ['request'], undefined, 'request'],
  ['chatcompletion', openAiAnswer(), ['request', 'model'], undefined, 'request.model'],
  ['chatcompletion', openAiAnswer(), ['request', 'model'], 7, 'request.model'],
  ['chatcompletion', openAiAnswer(), ['request', 'messages'], 'hello', 'request.messages'],
  ['chatcompletion', openAiAnswer(), ['request', 'messages', 0, 'role'], undefined, 'request.messages[0].role'],
  ['chatcompletion', openAiAnswer(), ['request', 'messages', 0, 'content'], 5, 'request.messages[0].content'],
  ['chatcompletion', openAiAnswer(), ['request', 'temperature'], 'hot', 'request.temperature'],
  ['chatcompletion', openAiAnswer(), ['request', 'max_tokens'], 1.5, 'request.max_tokens'],
  ['chatcompletion', openAiAnswer(), ['response'], undefined, 'response'],
  ['chatcompletion', openAiAnswer(), ['response', 'choices'], {}, 'response.choices'],
  ['chatcompletion', openAiAnswer(), ['response', 'choices', 0, 'message'], undefined, 'response.choices[0].message'],
  ['chatcompletion', openAiAnswer(), ['response', 'usage', 'prompt_tokens'], -1, 'response.usage.prompt_tokens'],
  [
    'chatcompletion',
    openAiAnswer(),
    ['response', 'usage', 'completion_tokens'],
    '5',
    'response.usage.completion_tokens',
  ],
  [
    'chatcompletion',
    openAiAnswer(),
    ['response', 'usage', 'prompt_tokens'],
    4_294_967_296,
    'response.usage.prompt_tokens',
  ],
  ['chatcompletion', openAiAnswer(), ['outcome'], undefined, 'outcome'],
  ['chatcompletion', openAiAnswer(), ['outcome'], 'failed', 'outcome'],
  ['chatcompletion', openAiAnswer(), ['duration_ms'], undefined, 'duration_ms'],
  ['chatcompletion', openAiAnswer(), ['duration_ms'], -1, 'duration_ms'],
  ['chatcompletion', openAiAnswer(), ['duration_ms'], 1.5, 'duration_ms'],
  ['chatcompletion', openAiAnswer(), ['duration_ms'], '100', 'duration_ms'],
  ['chatcompletion', openAiAnswer(), ['duration_ms'], 1e13, 'duration_ms'],
  ['chatcompletion', openAiAnswer(), ['tags'], 'prod', 'tags'],
  ['chatcompletion', openAiAnswer(), ['tags'], ['ok', 1], 'tags[1]'],
  ['chatcompletion', openAiAnswer(), ['attributes'], [], 'attributes'],
  ['chatcompletion', openAiAnswer({ attributes: {} }), ['attributes', 'cost_usd'], -0.01, 'attributes.cost_usd'],
  ['chatcompletion', openAiAnswer({ attributes: {} }), ['attributes', 'cost_usd'], 1_000_000, 'attributes.cost_usd'],
  [
    'chatcompletion',
    openAiAnswer({ attributes: {} }),
    ['attributes', 'sandbox_seconds'],
    'long',
    'attributes.sandbox_seconds',
  ],
  ['chatcompletion', openAiAnswer(), ['trace_id'], 'with space', 'trace_id'],
  ['chatcompletion', openAiAnswer(), ['trace_id'], 'x'.repeat(129), 'trace_id'],
  ['chatcompletion', openAiAnswer(), ['parent_span_id'], '', 'parent_span_id'],
  ['chatcompletion', openAiAnswer(), ['started_at'], 'yesterday', 'started_at'],
  ['chatcompletion', openAiAnswer(), ['ended_at'], 1_767_225_600, 'ended_at'],
  ['messages', anthropicToolUse(), ['request', 'messages', 0, 'content'], null, 'request.messages[0].content'],
  ['messages', anthropicToolUse(), ['request', 'system'], 5, 'request.system'],
  ['messages', anthropicToolUse(), ['response', 'content'], 'text', 'response.content'],
  ['messages', anthropicToolUse(), ['response', 'usage', 'output_tokens'], 1.5, 'response.usage.output_tokens'],
  ['chain', langChainRun(), ['chain_name'], undefined, 'chain_name'],
  ['chain', langChainRun(), ['request', 'messages', 1], 5, 'request.messages[1]'],
  ['chain', langChainRun(), ['response', 'generations'], [{ text: 'flat' }], 'response.generations[0]'],
  [
    'chain',
    langChainRun(),
    ['response', 'llm_output', 'token_usage', 'prompt_tokens'],
    'many',
    'response.llm_output.token_usage.prompt_tokens',
  ],
  ['chain', langChainRun(), ['intermediate_steps', 0], ['alone'], 'intermediate_steps[0]'],
  ['custom', customTool(), ['outcome'], undefined, 'outcome'],
  ['custom', { outcome: 'success' }, ['name'], undefined, 'name'],
  ['app', pageView(), ['event_type'], undefined, 'event_type'],
  ['app', pageView(), ['session_id'], 5, 'session_id'],
  ['app', pageView(), ['timestamp'], 'noon', 'timestamp'],
];

const OF_EACH: [IngestFormat, Record<string, unknown>][] = [
  ['chatcompletion', openAiAnswer()],
  ['messages', anthropicToolUse()],
  ['chain', langChainRun()],
  ['custom', customTool()],
  ['app', pageView()],
];

describe('checkEvent', () => {
  it.each(REAL)('checkEvent accepts %s', (_name, format, event) => {
    const checked = checkEvent(format, event);
    expect(checked).toEqual({ ok: true, value: event });
    // The very object: ids are hashes of its JSON, so no key may move.
    expect(checked.ok && checked.value).toBe(event);
  });

  it.each(BAD)('checkEvent names the invalid field of %s (%#)', (format, event, path, value, field) => {
    expect(checkEvent(format, withField(event, path, value))).toMatchObject({ ok: false, path: field });
  });

  it.each(OF_EACH)(
    'checkEvent has the same bounds for an amount beside the attributes as in them: %s',
    (format, event) => {
      for (const [field, bad, good] of [
        [
          'cost_usd',
          ['free', '', -5, '-5', 1_000_000, '1e3', Infinity, NaN, true, {}],
          [null, 0, 0.5, '0.000000000001', 999_999],
        ],
        ['sandbox_seconds', ['long', -1, 1e300, 1_000_000_001, [1]], [null, 0, '2.5', 1e9, 1e-300]],
      ] as const) {
        for (const value of bad) {
          expect([value, checkEvent(format, { ...event, [field]: value })]).toMatchObject([
            value,
            { ok: false, path: field },
          ]);
          const within = { ...event, attributes: { [field]: value } };
          expect([value, checkEvent(format, within)]).toMatchObject([
            value,
            { ok: false, path: `attributes.${field}` },
          ]);
        }
        for (const value of good)
          expect([value, checkEvent(format, { ...event, [field]: value }).ok]).toEqual([value, true]);
      }
    },
  );

  it.each([null, 5, 'text', [], undefined])('checkEvent rejects %j as an event', (value) => {
    for (const format of Object.keys(EVENT_SCHEMAS).filter(isIngestFormat))
      expect(checkEvent(format, value)).toMatchObject({ ok: false, path: '' });
  });

  it('checkEvent says in words what is accepted', () => {
    expect(checkEvent('chatcompletion', withField(openAiAnswer(), ['request', 'model'], undefined))).toEqual({
      ok: false,
      path: 'request.model',
      message: 'expected string, received undefined',
    });
  });
});

describe('splitBody', () => {
  it('splitBody accepts a batch of custom events, or a single one by name or event_type, and nothing else', () => {
    const event = customTool();
    expect(splitBody('custom', { events: [event, event] })).toEqual({ ok: true, events: [event, event], batch: true });
    expect(splitBody('custom', event)).toEqual({ ok: true, events: [event], batch: false });
    expect(splitBody('custom', { event_type: 'x', outcome: 'success' })).toMatchObject({ ok: true, batch: false });
    expect(splitBody('custom', { hello: 1 })).toMatchObject({ ok: false, path: 'events' });
    expect(splitBody('custom', { events: 'none' })).toMatchObject({ ok: false, path: 'events' });
  });

  it('splitBody accepts app events only as a batch', () => {
    expect(splitBody('app', { events: [pageView()] })).toMatchObject({ ok: true, batch: true });
    expect(splitBody('app', pageView())).toMatchObject({ ok: false, path: 'events' });
  });

  it.each([
    [0, false],
    [1, true],
    [BATCH_EVENTS_MAX, true],
    [BATCH_EVENTS_MAX + 1, false],
  ])('splitBody accepts a batch of %i events: %s', (size, taken) => {
    expect(splitBody('app', { events: Array.from({ length: size }, () => pageView()) }).ok).toBe(taken);
  });

  it('splitBody reads the body of a model call as one event', () => {
    const event = openAiAnswer();
    expect(splitBody('chatcompletion', event)).toEqual({ ok: true, events: [event], batch: false });
  });

  it.each([null, [], 'x', 3])('splitBody rejects the body %j', (body) => {
    expect(splitBody('custom', body)).toMatchObject({ ok: false, path: '' });
  });
});

describe('EVENT_SCHEMAS', () => {
  it('EVENT_SCHEMAS convert to JSON Schema with the required fields', () => {
    expect(z.toJSONSchema(EVENT_SCHEMAS.chatcompletion, { io: 'input' }).required).toEqual(['request', 'outcome']);
    expect(z.toJSONSchema(EVENT_SCHEMAS.app, { io: 'input' }).required).toEqual(['event_type', 'session_id']);
  });
});
