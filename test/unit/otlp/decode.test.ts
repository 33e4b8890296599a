// Spans of each convention, as the real instrumentations record them (test/data/otlp_spans.json) and as older ones did.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { eventHex } from '../../../pipeline/domain/ids.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing.ts';
import type { Span } from '../../../pipeline/domain/span.ts';

type Fields = Record<string, unknown>;
interface Recorded {
  name: string;
  attributes: Fields;
}
const RECORDED = JSON.parse(readFileSync(new URL('../../data/otlp_spans.json', import.meta.url), 'utf8')) as Record<string, Recorded[]>;
const NOW = Date.parse('2026-02-01T00:00:00.000Z');
const prices = createPriceBook(() => []);

function decoded(span: Fields, resource: Fields = {}): Span {
  const body = JSON.stringify({
    resource: { attributes: resource },
    scope: { name: 'test' },
    span: {
      trace_id: '5b8efff798038103d269b633813fc60c',
      span_id: 'eee19b7ec3c1b174',
      name: 'a span',
      start_time_unix_nano: '1767225600000000000',
      end_time_unix_nano: '1767225600840999999',
      ...span,
    },
  });
  const raw = { org_id: 'org_a', format: 'otlp' as const, event_hex: eventHex(body), trace_id: 't', received_at: NOW, body };
  const spans = spansOf({ prices, maxPromptTokens: () => null, redactorOf: () => null }, raw, JSON.parse(body));
  if (typeof spans === 'string' || spans[0] === undefined) throw new Error(JSON.stringify(spans));
  expect(spans).toHaveLength(1);
  return spans[0];
}
const ofAttributes = (attributes: Fields, over: Fields = {}): Span => decoded({ attributes, ...over });
const recorded = (library: string, index: number): Span => decoded({ ...RECORDED[library]?.[index] });
const used = ({ kind, model, input_tokens, output_tokens, cached_input_tokens }: Span): unknown[] => [
  kind,
  model,
  input_tokens,
  output_tokens,
  cached_input_tokens,
];
const SYSTEM = { role: 'system', content: 'Answer in one word.' };
const QUESTION = [SYSTEM, { role: 'user', content: 'What is the capital of France?' }];
const CALL = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'gpt-4o-mini' };

describe('recorded spans', () => {
  it('of OpenInference: calls, a tool call, an embedding', () => {
    const call = recorded('openinference', 0);
    expect(used(call)).toEqual(['llm', 'gpt-4o-mini-2024-07-18', 100, 20, 40]);
    expect([JSON.parse(call.prompt), call.response, call.name]).toEqual([QUESTION, 'Paris.', 'OpenAI Chat Completions']);
    // 60 at 0.15 USD for a million, 40 from the cache at 0.075, 20 out at 0.60.
    expect(call.cost_pico_usd).toBe(24_000_000n);
    expect(Object.keys(call.attributes).filter((key) => /_messages\./.test(key))).toEqual([]);
    const tool = recorded('openinference', 1);
    expect([tool.response, tool.attributes['tool_calls']]).toEqual([
      '',
      [{ id: 'call_1', function: { name: 'weather', arguments: '{"city":"Paris"}' } }],
    ]);
    const embedding = recorded('openinference', 2);
    expect([embedding.kind, embedding.model, embedding.prompt, embedding.output_tokens]).toEqual([
      'llm',
      'text-embedding-3-small',
      'hello',
      0,
    ]);
    expect([embedding.input_tokens > 0, embedding.attributes['tokens_estimated']]).toEqual([true, true]);
  });

  it('of OpenLLMetry: calls and a tool call', () => {
    const call = recorded('openllmetry', 0);
    expect(used(call)).toEqual(['llm', 'gpt-4o-mini', 100, 20, 0]);
    expect([JSON.parse(call.prompt), call.response]).toEqual([QUESTION, 'Paris.']);
    expect(call.cost_pico_usd).toBe(27_000_000n);
    expect(recorded('openllmetry', 1).attributes['tool_calls']).toEqual([
      { type: 'tool_call', id: 'call_1', name: 'weather', arguments: { city: 'Paris' } },
    ]);
  });

  it('of the Vercel AI SDK: only the calls count', () => {
    const counted = (library: string) => RECORDED[library]?.map((_, index) => recorded(library, index).input_tokens);
    expect(counted('ai')).toEqual([100, 0, 0, 100, 0, 0, 7, 0]);
    expect(counted('ai_legacy')).toEqual([0, 100, 100, 0, 7, 0]);
    expect(['ai', 'ai_legacy'].map((library) => RECORDED[library]?.map((_, index) => recorded(library, index).kind))).toEqual([
      ['llm', 'tool', 'event', 'llm', 'event', 'event', 'llm', 'llm'],
      ['tool', 'llm', 'llm', 'event', 'llm', 'event'],
    ]);
    const run = recorded('ai', 5);
    expect([run.cost_pico_usd, run.attributes['gen_ai.usage.input_tokens'], run.agent_id]).toEqual([0n, 200, 'geo']);
    expect([run.response, JSON.parse(run.prompt)]).toEqual([
      'Paris.',
      [SYSTEM, { role: 'user', content: 'What is the weather in the capital of France?' }],
    ]);
    const legacy = recorded('ai_legacy', 3);
    expect([legacy.response, legacy.attributes['ai.usage.inputTokens'], legacy.cost_pico_usd]).toEqual(['Paris.', 200, 0n]);
    expect(recorded('ai_legacy', 0)).toMatchObject({ kind: 'tool', prompt: '{"city":"Paris"}', response: '{"city":"Paris","temp":21}' });
    expect(used(recorded('ai_legacy', 1))).toEqual(['llm', 'gpt-4o-mini', 100, 20, 40]);
  });
});

describe('older conventions', () => {
  it('old names of usage and vendor, messages in numbered attributes', () => {
    const span = ofAttributes({
      'gen_ai.system': 'OpenAI',
      'gen_ai.request.model': 'gpt-4o-mini',
      'llm.request.type': 'chat',
      'gen_ai.usage.prompt_tokens': 100,
      'gen_ai.usage.completion_tokens': 20,
      'gen_ai.prompt.10.role': 'user',
      'gen_ai.prompt.10.content': 'last',
      'gen_ai.prompt.0.role': 'system',
      'gen_ai.prompt.0.content': 'first',
      'gen_ai.completion.0.role': 'assistant',
      'gen_ai.completion.0.content': 'Paris.',
      'gen_ai.completion.0.finish_reason': 'stop',
      'gen_ai.completion.0.tool_calls.0.name': 'weather',
    });
    expect(used(span)).toEqual(['llm', 'gpt-4o-mini', 100, 20, 0]);
    expect(JSON.parse(span.prompt)).toEqual([
      { role: 'system', content: 'first' },
      { role: 'user', content: 'last' },
    ]);
    expect([span.response, span.attributes['tool_calls']]).toEqual(['Paris.', [{ name: 'weather' }]]);
  });

  it('one event a message', () => {
    const events = [
      { time_unix_nano: '1', name: 'gen_ai.system.message', attributes: { content: 'Answer in one word.' } },
      { time_unix_nano: '2', name: 'gen_ai.user.message', attributes: { content: 'What is the capital of France?' } },
      {
        time_unix_nano: '3',
        name: 'gen_ai.choice',
        attributes: { index: 0, finish_reason: 'stop', message: '{"role":"assistant","content":"Paris."}' },
      },
    ];
    const span = ofAttributes(CALL, { events });
    expect([JSON.parse(span.prompt), span.response]).toEqual([QUESTION, 'Paris.']);
    // The events stay, without what became prompt and response.
    expect(span.attributes['events']).toEqual([
      { time_unix_nano: '1', name: 'gen_ai.system.message', attributes: {} },
      { time_unix_nano: '2', name: 'gen_ai.user.message', attributes: {} },
      { time_unix_nano: '3', name: 'gen_ai.choice', attributes: { index: 0, finish_reason: 'stop' } },
    ]);
  });

  it('messages in one event, structured', () => {
    const attributes = {
      'gen_ai.input.messages': [{ role: 'user', parts: [{ type: 'text', content: 'Hi' }] }],
      'gen_ai.output.messages': [{ role: 'assistant', parts: [{ type: 'text', content: 'Ho' }], finish_reason: 'stop' }],
    };
    const events = [{ time_unix_nano: '1', name: 'gen_ai.client.inference.operation.details', attributes }];
    expect(ofAttributes(CALL, { events })).toMatchObject({ prompt: '[{"role":"user","content":"Hi"}]', response: 'Ho' });
  });

  it('cached tokens that a vendor counts apart from the input', () => {
    const usage = { 'gen_ai.usage.input_tokens': 10, 'gen_ai.usage.output_tokens': 1, 'gen_ai.usage.cache_read_input_tokens': 90 };
    expect(used(ofAttributes({ ...CALL, ...usage }))).toEqual(['llm', 'gpt-4o-mini', 100, 1, 90]);
  });
});

describe('what a span is', () => {
  it.each([
    [{ 'gen_ai.operation.name': 'text_completion' }, 'llm'],
    [{ 'gen_ai.operation.name': 'generate_content' }, 'llm'],
    [{ 'gen_ai.operation.name': 'embeddings' }, 'llm'],
    [{ 'gen_ai.operation.name': 'execute_tool' }, 'tool'],
    [{ 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-4o' }, 'event'],
    [{ 'gen_ai.operation.name': 'create_agent' }, 'event'],
    [{ 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-4o' }, 'llm'],
    [{ 'openinference.span.kind': 'TOOL' }, 'tool'],
    [{ 'openinference.span.kind': 'CHAIN', 'llm.token_count.prompt': 9 }, 'event'],
    [{ 'openinference.span.kind': 'RETRIEVER' }, 'event'],
    [{ 'traceloop.span.kind': 'tool' }, 'tool'],
    [{ 'traceloop.span.kind': 'workflow', 'gen_ai.usage.prompt_tokens': 9 }, 'event'],
    [{ 'ai.operationId': 'ai.streamText.doStream' }, 'llm'],
    [{ 'ai.operationId': 'ai.streamText' }, 'event'],
    [{ 'http.request.method': 'GET' }, 'event'],
    [{}, 'event'],
  ])('%j is %s', (attributes, kind) => {
    const span = ofAttributes({ ...attributes, 'gen_ai.usage.input_tokens': 5, 'gen_ai.usage.output_tokens': 5 });
    expect([span.kind, span.input_tokens]).toEqual([kind, kind === 'llm' ? 5 : 0]);
    // What is not counted is not lost.
    expect(span.attributes['gen_ai.usage.input_tokens']).toBe(5);
  });

  it('keeps its name, its times and its place', () => {
    const span = decoded({ name: 'GET /', parent_span_id: 'aaaaaaaaaaaaaaaa' });
    expect(span).toMatchObject({ name: 'GET /', parent_span_id: 'aaaaaaaaaaaaaaaa', span_id: 'eee19b7ec3c1b174', source_format: 'otlp' });
    expect([span.started_at, span.ended_at]).toEqual([1_767_225_600_000, 1_767_225_600_840]);
    expect(decoded({ name: '' }).name).toBe('unknown');
  });

  it('keeps resource, scope, events, links and status message, even under names that are taken', () => {
    const span = decoded(
      {
        attributes: { scope: 'mine' },
        events: [{ time_unix_nano: '1', name: 'log', attributes: { a: 1 } }],
        links: [{ trace_id: 'ab', span_id: 'cd' }],
        status: { code: 2, message: 'it broke' },
        kind: 2,
      },
      { 'service.name': 'shop', department: 'sales' },
    );
    expect(span.attributes).toEqual({
      scope: 'mine',
      'otel.scope': { name: 'test' },
      resource: { 'service.name': 'shop', department: 'sales' },
      events: [{ time_unix_nano: '1', name: 'log', attributes: { a: 1 } }],
      links: [{ trace_id: 'ab', span_id: 'cd' }],
      status_message: 'it broke',
      error_message: 'it broke',
      department: 'sales',
      'otel.span_kind': 'server',
    });
    expect([span.outcome, span.department]).toEqual(['error', 'sales']);
  });

  it.each([
    [{ status: { code: 1 } }, 'success'],
    [{ status: { code: 2 } }, 'error'],
    [{ status: { code: 2 }, attributes: { 'error.type': 'APIConnectionTimeoutError' } }, 'timeout'],
    [{ status: { code: 2, message: 'DEADLINE_EXCEEDED' } }, 'timeout'],
    [{ attributes: { 'error.type': 'timeout' } }, 'success'],
  ])('ends as its status says: %j', (over, outcome) => {
    expect(decoded(over).outcome).toBe(outcome);
  });

  it('takes the error from the exception where the status has no text', () => {
    const events = [{ time_unix_nano: '1', name: 'exception', attributes: { 'exception.message': 'no room' } }];
    expect(decoded({ status: { code: 2 }, events }).attributes['error_message']).toBe('no room');
  });

  it('belongs to a session, a user and an agent', () => {
    expect(
      ofAttributes({ 'gen_ai.conversation.id': 's', 'enduser.id': 'u', 'gen_ai.agent.id': 'a', 'gen_ai.agent.name': 'n' }),
    ).toMatchObject({
      session_id: 's',
      user_id: 'u',
      agent_id: 'a',
    });
    expect(decoded({}, { 'session.id': 's', 'user.id': 'u', 'gen_ai.agent.id': 'a' })).toMatchObject({
      session_id: 's',
      user_id: 'u',
      agent_id: 'a',
    });
    expect(ofAttributes({ 'tag.tags': ['a', 'b'], 'langfuse.trace.tags': '["b","c"]' }).tags).toEqual(['a', 'b', 'c']);
  });

  it('takes a cost as given, but not of a run that repeats its calls', () => {
    expect(ofAttributes({ ...CALL, cost_usd: 0.5 }).cost_pico_usd).toBe(500_000_000_000n);
    const run = ofAttributes({ 'gen_ai.operation.name': 'invoke_agent', cost_usd: 0.5 });
    expect([run.cost_pico_usd, run.attributes['cost_usd']]).toEqual([0n, 0.5]);
  });
});

it('gives spans or a reason for whatever stands in a body', () => {
  const keys = fc.constantFrom(
    'gen_ai.input.messages',
    'gen_ai.output.messages',
    'gen_ai.system_instructions',
    'gen_ai.prompt.0.role',
    'gen_ai.prompt.0',
    'gen_ai.prompt.0.role.more',
    'llm.input_messages.0.message.contents.0.message_content.text',
    'llm.output_messages.__proto__.x',
    'llm.output_messages.0.__proto__.x',
    'ai.prompt',
    'ai.prompt.messages',
    'ai.response.toolCalls',
    'gen_ai.operation.name',
    'gen_ai.request.model',
    'gen_ai.usage.input_tokens',
    'tags',
    '__proto__',
    'session.id',
  );
  const value = fc.oneof(fc.jsonValue(), fc.json(), fc.string(), fc.nat());
  const events = fc.array(
    fc.record({
      name: fc.constantFrom('gen_ai.choice', 'gen_ai.user.message', 'exception', ''),
      attributes: fc.dictionary(fc.constantFrom('content', 'message', 'exception.message'), value),
    }),
  );
  fc.assert(
    fc.property(fc.dictionary(keys, value), events, fc.jsonValue(), (attributes, list, odd) => {
      const span = ofAttributes({ 'gen_ai.operation.name': 'chat', ...attributes }, { events: list });
      expect([typeof span.prompt, typeof span.response]).toEqual(['string', 'string']);
      expect(JSON.parse(JSON.stringify(span.attributes))).toBeTypeOf('object');
      try {
        decoded({ attributes: odd, events: odd, links: odd, status: odd });
      } catch (error) {
        expect(String(error)).toMatch(/takes|is needed/);
      }
    }),
    { numRuns: 500 },
  );
  expect(({} as Fields)['x']).toBeUndefined();
});
