// The decode stage turns each of the formats into canonical spans, from events as real SDKs send them.
import { expect, it } from 'vitest';
import { chainStepSpanId, eventHex } from '../../../pipeline/domain/traces/ids.ts';
import { keepRule } from '../../../pipeline/domain/traces/keep_rules.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { TABLE_NAME } from '../../../pipeline/domain/pricing/price_table.ts';
import {
  anthropicToolUse,
  customTool,
  langChainRun,
  openAiAnswer,
  openAiToolCall,
  pageView,
  withField,
} from '../formats/payloads.ts';
import { decode, decodeOne, logged, NOW } from './decoding.ts';

it('a chatcompletion event becomes an llm span with tokens, cost, attributes and texts', () => {
  const event = openAiToolCall();
  const { event_hex, body } = logged('chatcompletion', event);
  expect(decode('chatcompletion', event)).toEqual([
    {
      org_id: 'org_a',
      trace_id: `trc_${event_hex}`,
      span_id: `spn_${event_hex}`,
      parent_span_id: '',
      event_hex,
      started_at: NOW - 812,
      ended_at: NOW,
      received_at: NOW,
      kind: 'llm',
      name: 'gpt-4o',
      model: 'gpt-4o',
      provider: 'openai',
      source_format: 'chatcompletion',
      outcome: 'success',
      agent_id: 'agent_1',
      department: 'sales',
      realm: 'eu',
      environment: '',
      service: '',
      release: '',
      prompt_name: '',
      prompt_version: '',
      session_id: '',
      user_id: '',
      tags: ['prod', 'travel'],
      input_tokens: 1200,
      output_tokens: 30,
      cached_input_tokens: 1024,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      first_token_ms: 0,
      // 176 × 2.5 + 1024 × 1.25 + 30 × 10 USD per million
      cost_pico_usd: usdToPico('0.00202'),
      price: {
        source: `${TABLE_NAME}:openai/gpt-4o`,
        input_usd_per_mtok: 2.5,
        output_usd_per_mtok: 10,
        cached_input_usd_per_mtok: 1.25,
      },
      attributes: {
        agent_id: 'agent_1',
        department: 'sales',
        realm: 'eu',
        tool_calls: [{ id: 'call_2', type: 'function', function: { name: 'book', arguments: '{}' } }],
        'gen_ai.request.temperature': 0.2,
        'gen_ai.request.max_tokens': 500,
        'gen_ai.request.top_p': 1,
        'gen_ai.tool.definitions': [{ type: 'function', function: { name: 'search', parameters: { type: 'object' } } }],
        'gen_ai.response.id': 'chatcmpl-BxYz',
        'gen_ai.response.model': 'gpt-4o-2024-08-06',
        'gen_ai.response.finish_reasons': ['tool_calls'],
        'gen_ai.response.created': 1_767_225_600,
        'gen_ai.response.system_fingerprint': 'fp_1',
        'gen_ai.usage.prompt_tokens_details': { cached_tokens: 1024, audio_tokens: 0 },
        'gen_ai.usage.completion_tokens_details': { reasoning_tokens: 0, audio_tokens: 0 },
      },
      prompt: JSON.stringify((event['request'] as { messages: unknown }).messages),
      response: '',
      storage_bytes: Buffer.byteLength(body),
      sandbox_seconds: 0,
    },
  ]);
});

it('the response of a chatcompletion span is its text parts joined, or its refusal', () => {
  const answer = (message: unknown) =>
    decodeOne('chatcompletion', withField(openAiAnswer(), ['response', 'choices', 0, 'message'], message)).response;
  expect(
    answer({
      content: [
        { type: 'text', text: 'Hel' },
        { type: 'text', text: 'lo' },
      ],
    }),
  ).toBe('Hello');
  expect(answer({ content: null, refusal: 'I cannot.' })).toBe('I cannot.');
});

it('a chatcompletion that failed without an answer keeps its outcome and error and has no tokens', () => {
  const span = decodeOne(
    'chatcompletion',
    openAiAnswer({ outcome: 'error', response: null, error: { message: 'overloaded', code: 529 } }),
  );
  expect(span).toMatchObject({
    outcome: 'error',
    response: '',
    input_tokens: 0,
    output_tokens: 0,
    cost_pico_usd: 0n,
  });
  expect(span.attributes).toEqual({ error: { message: 'overloaded', code: 529 } });
});

it('decoding a chatcompletion replaces no attribute that the sender wrote', () => {
  const span = decodeOne(
    'chatcompletion',
    openAiToolCall({ attributes: { tool_calls: 'mine', 'gen_ai.response.id': 7 } }),
  );
  expect(span.attributes).toMatchObject({ tool_calls: 'mine', 'gen_ai.response.id': 7 });
});

it('a messages event becomes an llm span whose prompt starts with the system prompt and whose input includes cached tokens', () => {
  const event = anthropicToolUse();
  const span = decodeOne('messages', event);
  const request = event['request'] as { system: unknown; messages: unknown[] };
  expect(JSON.parse(span.prompt)).toEqual([{ role: 'system', content: request.system }, ...request.messages]);
  expect(span).toMatchObject({
    kind: 'llm',
    name: 'claude-sonnet-4-20250514',
    response: 'Let me look.',
    input_tokens: 5050,
    cached_input_tokens: 3000,
    output_tokens: 40,
    cost_pico_usd: usdToPico('0.012525'),
  });
  expect(span.attributes).toEqual({
    tool_calls: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Lisbon' } }],
    'gen_ai.response.reasoning': 'They want Lisbon.',
    'gen_ai.request.max_tokens': 1024,
    'gen_ai.response.id': 'msg_01',
    'gen_ai.response.model': 'claude-sonnet-4-20250514',
    'gen_ai.response.finish_reasons': ['tool_use'],
    'gen_ai.usage.cache_creation_input_tokens': 2000,
    'gen_ai.usage.cache_creation': { ephemeral_5m_input_tokens: 500, ephemeral_1h_input_tokens: 1500 },
    'gen_ai.usage.service_tier': 'standard',
  });
});

it('a messages event may have a string as its system prompt', () => {
  const span = decodeOne('messages', withField(anthropicToolUse(), ['request', 'system'], 'Be brief.'));
  expect((JSON.parse(span.prompt) as unknown[])[0]).toEqual({ role: 'system', content: 'Be brief.' });
});

it('a chain event becomes a span named after the chain and a tool child for each step', () => {
  const event = langChainRun({
    attributes: { agent_id: 'agent_9' },
    tags: ['t'],
    span_id: 'root',
    trace_id: 'run-1',
  });
  const body = JSON.stringify(event);
  const [chain, ...steps] = decode('chain', event);
  expect(chain).toMatchObject({
    span_id: 'root',
    parent_span_id: '',
    kind: 'llm',
    name: 'AgentExecutor',
    model: 'gpt-4o-mini',
    response: 'Portugal won.',
    input_tokens: 90,
    output_tokens: 12,
    cost_pico_usd: 90n * 150_000n + 12n * 600_000n,
    tags: ['t'],
    attributes: {
      agent_id: 'agent_9',
      agent_name: 'researcher',
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.response.model': 'gpt-4o-mini-2024-07-18',
    },
  });
  expect(steps.map(({ span_id, name, prompt, response }) => [span_id, name, prompt, response])).toEqual([
    [chainStepSpanId(body, 0), 'search', 'search(final 2016)', 'Portugal 1-0 France'],
    [chainStepSpanId(body, 1), 'calculator', '{"tool":"calculator","tool_input":"1-0"}', '1'],
    [chainStepSpanId(body, 2), 'tool', 'I should answer now', ''],
  ]);
  for (const step of steps) {
    expect(step).toMatchObject({
      trace_id: 'run-1',
      parent_span_id: 'root',
      kind: 'tool',
      model: '',
      agent_id: 'agent_9',
      input_tokens: 0,
      output_tokens: 0,
      cost_pico_usd: 0n,
      storage_bytes: 0,
      event_hex: chain?.event_hex,
    });
  }
});

it('the steps of a chain divide the time of the chain in their order', () => {
  const [chain, ...steps] = decode('chain', langChainRun({ duration_ms: 1000 }));
  expect(steps.map(({ started_at, ended_at }) => [started_at - NOW, ended_at - NOW])).toEqual([
    [-1000, -667],
    [-667, -334],
    [-334, 0],
  ]);
  expect(chain).toMatchObject({ started_at: NOW - 1000, ended_at: NOW });
});

it('a custom tool event becomes a tool span whose input and output are prompt and response, and stay attributes', () => {
  const span = decodeOne('custom', customTool());
  expect(span).toMatchObject({
    kind: 'tool',
    name: 'web_search',
    trace_id: 'trc_0123456789abcdef',
    prompt: '{"query":"lisbon"}',
    response: 'Sunny, 24 degrees',
    agent_id: 'agent_1',
    model: '',
    cost_pico_usd: 0n,
  });
  expect(span.attributes).toEqual({
    input: { query: 'lisbon' },
    output: 'Sunny, 24 degrees',
    agent_id: 'agent_1',
    event_type: 'tool_call',
  });
});

it('a custom event keeps two event_types apart, and sampling keeps its trace for either', () => {
  const sent = { name: 'step', event_type: 'loop', outcome: 'success', attributes: { event_type: 'click' } };
  const span = decodeOne('custom', sent);
  expect(span.attributes).toEqual({ event_type: 'click', 'event.event_type': 'loop' });
  expect(keepRule([span], 5000)).toBe('loop');
  expect(
    keepRule([decodeOne('custom', { ...sent, event_type: 'click', attributes: { event_type: 'loop' } })], 5000),
  ).toBe('loop');
});

it('a custom event without a kind becomes an event span named by event_type', () => {
  expect(decodeOne('custom', { event_type: 'checkpoint', outcome: 'timeout', note: 'kept' })).toMatchObject({
    kind: 'event',
    name: 'checkpoint',
    outcome: 'timeout',
    started_at: NOW,
    ended_at: NOW,
    attributes: { note: 'kept' },
  });
});

it.each([
  [
    "OpenAI's names",
    { usage: { prompt_tokens: 1000, completion_tokens: 100, prompt_tokens_details: { cached_tokens: 600 } } },
  ],
  ['plain names', { input_tokens: 1000, output_tokens: 100, cached_input_tokens: 600 }],
  [
    "OpenTelemetry's names",
    {
      'gen_ai.usage.input_tokens': 1000,
      'gen_ai.usage.output_tokens': 100,
      'gen_ai.usage.cache_read.input_tokens': 600,
    },
  ],
  ["Anthropic's names", { usage: { input_tokens: 400, cache_read_input_tokens: 600, output_tokens: 100 } }],
])('a custom event with span_kind llm and usage in %s becomes a priced llm span', (_name, usage) => {
  const span = decodeOne('custom', {
    name: 'answer',
    outcome: 'success',
    attributes: { span_kind: 'llm', model: 'gpt-4o', prompt: 'Hi', response: 'Ho', ...usage },
  });
  expect(span).toMatchObject({
    kind: 'llm',
    model: 'gpt-4o',
    prompt: 'Hi',
    response: 'Ho',
    input_tokens: 1000,
    output_tokens: 100,
    cached_input_tokens: 600,
  });
  expect(span.cost_pico_usd).toBe(usdToPico('0.00275'));
});

it('an app event becomes a point in time of its session', () => {
  const span = decodeOne('app', pageView());
  expect(span).toMatchObject({
    kind: 'app',
    name: 'page_view',
    outcome: 'success',
    trace_id: `trc_${eventHex('sess-42')}`,
    session_id: 'sess-42',
    user_id: 'user_7',
    started_at: Date.parse('2026-01-31T12:00:00.250Z'),
    ended_at: Date.parse('2026-01-31T12:00:00.263Z'),
    attributes: { duration_ms: 12.6, referrer: '/', url: 'https://shop.test/cart?id=1' },
  });
});

it.each([
  ['error', 'error'],
  ['timeout', 'timeout'],
  ['odd', 'success'],
])('an app event with attributes.outcome %s has the outcome %s', (stated, outcome) => {
  expect(decodeOne('app', pageView({ attributes: { outcome: stated } })).outcome).toBe(outcome);
});
