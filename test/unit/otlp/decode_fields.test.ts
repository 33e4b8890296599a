// The OTLP decoder gives a span its kind, times, outcome, cost and attributes, whatever the span holds.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { eventHex } from '../../../pipeline/domain/traces/ids.ts';
import { PiiRedactor } from '../../../pipeline/domain/pii/pii.ts';
import { CALL, decoded, type Fields, NOW, ofAttributes, prices } from './decoding.ts';

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
])('a span with %j is of the kind %s, and only a call has tokens', (attributes, kind) => {
  const span = ofAttributes({ ...attributes, 'gen_ai.usage.input_tokens': 5, 'gen_ai.usage.output_tokens': 5 });
  expect([span.kind, span.input_tokens]).toEqual([kind, kind === 'llm' ? 5 : 0]);
  // What is not counted is not lost.
  expect(span.attributes['gen_ai.usage.input_tokens']).toBe(5);
});

it('a span keeps its name, its times, its id and its parent', () => {
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

it('resource, scope, events, links and status message become attributes, even under names that are taken', () => {
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
])('the outcome of a span follows its status: %j', (over, outcome) => {
  expect(decoded(over).outcome).toBe(outcome);
});

it('the error message comes from the exception event when the status has no message', () => {
  const events = [{ time_unix_nano: '1', name: 'exception', attributes: { 'exception.message': 'no room' } }];
  expect(decoded({ status: { code: 2 }, events }).attributes['error_message']).toBe('no room');
});

it('session, user, agent and tags of a span are read from its attributes and its resource', () => {
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

it('a given cost counts for a call and not for a run that repeats its calls', () => {
  expect(ofAttributes({ ...CALL, cost_usd: 0.5 }).cost_pico_usd).toBe(500_000_000_000n);
  const run = ofAttributes({ 'gen_ai.operation.name': 'invoke_agent', cost_usd: 0.5 });
  expect([run.cost_pico_usd, run.attributes['cost_usd']]).toEqual([0n, 0.5]);
});

it('the decoder gives spans or a reason for any attributes, events, links and status', () => {
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
  'JSON of %d levels in an attribute is decoded as a text and its personal data is redacted',
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
