// Spans of each convention, as the real instrumentations record them (test/data/otlp_spans.json) and as older ones did.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { eventHex } from '../../../pipeline/domain/traces/ids.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { PiiRedactor } from '../../../pipeline/domain/pii/pii.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';

type Fields = Record<string, unknown>;
interface Recorded {
  name: string;
  attributes: Fields;
}
const RECORDED = JSON.parse(readFileSync(new URL('../../data/otlp_spans.json', import.meta.url), 'utf8')) as Record<
  string,
  Recorded[]
>;
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
  const raw = {
    org_id: 'org_a',
    format: 'otlp' as const,
    event_hex: eventHex(body),
    trace_id: 't',
    received_at: NOW,
    body,
  };
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
const CALL = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.provider.name': 'openai',
  'gen_ai.request.model': 'gpt-4o-mini',
};

describe('recorded spans', () => {
  it('of OpenInference: calls, a tool call, an embedding', () => {
    const call = recorded('openinference', 0);
    expect(used(call)).toEqual(['llm', 'gpt-4o-mini-2024-07-18', 100, 20, 40]);
    expect([JSON.parse(call.prompt), call.response, call.name]).toEqual([
      QUESTION,
      'Paris.',
      'OpenAI Chat Completions',
    ]);
    // 60 at 0.15 USD for a million, 40 from the cache at 0.075, 20 out at 0.60.
    expect(call.cost_pico_usd).toBe(24_000_000n);
    expect(Object.keys(call.attributes).filter((key) => /_messages\.|\.value$/.test(key))).toEqual([]);
    expect(JSON.stringify(call.attributes)).not.toMatch(/capital|Paris/);
    // What else the answer said stays.
    expect(call.attributes).toMatchObject({
      'gen_ai.response.id': 'c1',
      'llm.finish_reason': 'stop',
      'input.mime_type': 'application/json',
    });
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
    expect(
      ['ai', 'ai_legacy'].map((library) => RECORDED[library]?.map((_, index) => recorded(library, index).kind)),
    ).toEqual([
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
    expect([legacy.response, legacy.attributes['ai.usage.inputTokens'], legacy.cost_pico_usd]).toEqual([
      'Paris.',
      200,
      0n,
    ]);
    expect(recorded('ai_legacy', 0)).toMatchObject({
      kind: 'tool',
      prompt: '{"city":"Paris"}',
      response: '{"city":"Paris","temp":21}',
    });
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
      'gen_ai.output.messages': [
        { role: 'assistant', parts: [{ type: 'text', content: 'Ho' }], finish_reason: 'stop' },
      ],
    };
    const events = [{ time_unix_nano: '1', name: 'gen_ai.client.inference.operation.details', attributes }];
    expect(ofAttributes(CALL, { events })).toMatchObject({
      prompt: '[{"role":"user","content":"Hi"}]',
      response: 'Ho',
    });
  });

  it('cached tokens that a vendor counts apart from the input', () => {
    const usage = {
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 1,
      'gen_ai.usage.cache_read_input_tokens': 90,
    };
    expect(used(ofAttributes({ ...CALL, ...usage }))).toEqual(['llm', 'gpt-4o-mini', 100, 1, 90]);
  });
});

describe('a text that a span says twice', () => {
  const asked = {
    'gen_ai.input.messages': JSON.stringify([{ role: 'user', parts: [{ type: 'text', content: 'Where is it?' }] }]),
  };
  const answered = {
    'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts: [{ type: 'text', content: 'In Lisbon.' }] }]),
  };
  const request = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Where is it?' }] });
  const chosen = JSON.stringify({ choices: [{ message: { content: 'In Lisbon.' } }] });

  it.each([
    ['OpenInference', { 'input.value': request, 'output.value': chosen }],
    ['OpenInference, of one message only', { 'input.value': 'Where is it?', 'output.value': 'In Lisbon.' }],
    ['OpenLLMetry', { 'traceloop.entity.input': JSON.stringify(request), 'traceloop.entity.output': chosen }],
    [
      'the AI SDK',
      {
        'ai.prompt': request,
        'ai.prompt.messages': '[{"role":"user","content":"Where is it?"}]',
        'ai.response.text': 'In Lisbon.',
      },
    ],
    [
      'older names',
      {
        'gen_ai.prompt.0.role': 'user',
        'gen_ai.prompt.0.content': 'Where is it?',
        'gen_ai.completion.0.content': 'In Lisbon.',
      },
    ],
    [
      'numbered messages',
      { 'llm.input_messages.0.message.content': 'Where is it?', 'llm.output_messages.0.message.content': 'In Lisbon.' },
    ],
  ])('is kept once, beside a call and beside a run: %s', (_, again) => {
    for (const of of [CALL, { 'gen_ai.operation.name': 'invoke_agent' }]) {
      const span = ofAttributes({ ...of, ...again, ...asked, ...answered });
      expect(span).toMatchObject({ prompt: '[{"role":"user","content":"Where is it?"}]', response: 'In Lisbon.' });
      expect(JSON.stringify(span.attributes)).not.toMatch(/Where|Lisbon/);
    }
  });

  it('is what was said where nothing else says it, and is kept once then too', () => {
    const span = ofAttributes({
      ...CALL,
      'input.value': request,
      'output.value': chosen,
      'gen_ai.output.messages': '[]',
    });
    expect([span.prompt, span.response]).toEqual([request, chosen]);
    expect(JSON.stringify(span.attributes)).not.toMatch(/Where|Lisbon/);
    const cut = ofAttributes({
      ...CALL,
      'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"te',
      'gen_ai.output.messages': '[]',
    });
    expect([cut.prompt, cut.attributes['gen_ai.input.messages'], cut.response]).toEqual([
      '[{"role":"user","parts":[{"type":"te',
      undefined,
      '',
    ]);
  });

  it('stands behind the instructions, wherever either stands', () => {
    const conversation = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Where is it?' },
    ];
    for (const said of [
      { 'input.value': 'Where is it?' },
      { 'gen_ai.prompt.0.role': 'user', 'gen_ai.prompt.0.content': 'Where is it?' },
      asked,
    ]) {
      const span = ofAttributes({ ...CALL, 'gen_ai.system_instructions': 'Be brief.', ...said });
      expect(JSON.parse(span.prompt)).toEqual(conversation);
      expect(JSON.stringify(span.attributes)).not.toMatch(/brief|Where/);
    }
  });

  it('is one of those that were embedded', () => {
    const embedding = { 'openinference.span.kind': 'EMBEDDING', 'embedding.embeddings.0.embedding.text': 'hello' };
    for (const more of [{}, { 'input.value': 'hello' }]) {
      const span = ofAttributes({ ...embedding, ...more });
      expect([span.prompt, JSON.stringify(span.attributes).includes('hello')]).toEqual(['hello', false]);
    }
  });

  it('is not what is said of something else', () => {
    const other = {
      'llm.invocation_parameters': '{"temperature":0}',
      'llm.prompt_template.template': 'Where is {{what}}?',
      'gen_ai.prompt.name': 'where',
      'gen_ai.tool.call.arguments': '{"city":"Porto"}',
      'ai.prompt.tools': ['{"name":"map"}'],
    };
    expect(ofAttributes({ ...CALL, ...asked, ...answered, ...other }).attributes).toMatchObject(other);
    // The input of a run may be another one than that of its conversation.
    const run = {
      'gen_ai.operation.name': 'invoke_agent',
      'traceloop.entity.input': '{"args":["Porto"],"kwargs":{"verbose":true}}',
    };
    expect(ofAttributes({ ...run, ...asked }).attributes).toMatchObject(run);
  });

  it('is taken out of an answer that has more than texts, which stays', () => {
    const picture = { type: 'image', uri: 'https://example.com/a.png' };
    const parts = [{ type: 'text', content: 'In Lisbon.' }, picture];
    const span = ofAttributes({ ...CALL, 'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts }]) });
    expect(span.response).toBe('In Lisbon.');
    expect(span.attributes['gen_ai.output.messages']).toEqual([{ role: 'assistant', parts: [picture] }]);
  });

  it('is kept once of a tool’s call', () => {
    const tool = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.call.arguments': '{"n":7}',
      'input.value': '{"n":7}',
    };
    const span = ofAttributes({ ...tool, 'gen_ai.tool.call.result': '"Lisbon"', 'output.value': '{"city":"Lisbon"}' });
    expect(span).toMatchObject({ prompt: '{"n":7}', response: '"Lisbon"' });
    expect(span.attributes).not.toHaveProperty('input.value');
    expect(span.attributes).not.toHaveProperty('output.value');
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
    expect(span).toMatchObject({
      name: 'GET /',
      parent_span_id: 'aaaaaaaaaaaaaaaa',
      span_id: 'eee19b7ec3c1b174',
      source_format: 'otlp',
    });
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
      ofAttributes({
        'gen_ai.conversation.id': 's',
        'enduser.id': 'u',
        'gen_ai.agent.id': 'a',
        'gen_ai.agent.name': 'n',
      }),
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
    'input.value',
    'output.value',
    'embedding.embeddings.0.embedding.text',
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

it.each([200, 20_000])(
  'JSON of %d levels in an attribute is a text like any other, also where personal data is redacted',
  (levels) => {
    const nested = `${'['.repeat(levels)}"ann@example.com"${']'.repeat(levels)}`;
    const body = JSON.stringify({
      resource: { attributes: {} },
      scope: { name: 'test' },
      span: {
        trace_id: '5b8efff798038103d269b633813fc60c',
        span_id: 'eee19b7ec3c1b174',
        name: 'deep',
        start_time_unix_nano: '1767225600000000000',
        end_time_unix_nano: '1767225600840999999',
        attributes: {
          'gen_ai.operation.name': 'chat',
          'input.value': nested,
          'gen_ai.input.messages': nested,
          'metadata.deep': nested,
        },
      },
    });
    const raw = {
      org_id: 'org_a',
      format: 'otlp' as const,
      event_hex: eventHex(body),
      trace_id: 't',
      received_at: NOW,
      body,
    };
    const policy = new PiiRedactor({ kinds: ['email'], custom: [], hash_key: null });
    const [span] = spansOf({ prices, maxPromptTokens: () => null, redactorOf: () => policy }, raw, JSON.parse(body));
    expect(typeof span === 'object' && JSON.stringify(span.attributes) + span.prompt).not.toContain('ann@example.com');
    expect(typeof span === 'object' && span.name).toBe('deep');
  },
);
