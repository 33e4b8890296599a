// Decode: five formats to canonical spans, against events as real SDKs send them.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chainStepSpanId, eventHex, traceIdOf } from '../../../pipeline/domain/traces/ids.ts';
import { keepRule } from '../../../pipeline/domain/traces/keep_rules.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { estimateTokens } from '../../../pipeline/domain/text/tokens.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { TABLE_NAME } from '../../../pipeline/domain/pricing/price_table.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { foldTexts, unfoldTexts } from '../../../pipeline/domain/text/text_refs.ts';
import type { LoggedEvent } from '../../../pipeline/stage.ts';
import { createDecodeStage } from '../../../pipeline/stages/decode.ts';
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

const NOW = Date.parse('2026-02-01T00:00:00.000Z');
const stage = createDecodeStage({
  prices: createPriceBook(() => []),
  maxPromptTokens: () => null,
  redactorOf: () => null,
});

function logged(format: SourceFormat, event: Record<string, unknown>, index = 0): LoggedEvent {
  const body = JSON.stringify(event);
  const event_hex = eventHex(body);
  return {
    partition: 3,
    log_seq: 17,
    log_index: index,
    org_id: 'org_a',
    format,
    event_hex,
    trace_id: traceIdOf(format, event, event_hex),
    received_at: NOW,
    body,
  };
}

function decode(format: SourceFormat, event: Record<string, unknown>, using = stage): Span[] {
  const [outcome] = using.run([logged(format, event)]);
  if (outcome?.kind !== 'emit') throw new Error(`not emitted: ${JSON.stringify(outcome)}`);
  return outcome.out.spans;
}

function decodeOne(format: SourceFormat, event: Record<string, unknown>, using = stage): Span {
  const [span] = decode(format, event, using);
  if (span === undefined) throw new Error('no span');
  return span;
}

describe('chatcompletion', () => {
  it('becomes an llm span', () => {
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
        source_format: 'chatcompletion',
        outcome: 'success',
        agent_id: 'agent_1',
        department: 'sales',
        realm: 'eu',
        session_id: '',
        user_id: '',
        tags: ['prod', 'travel'],
        input_tokens: 1200,
        output_tokens: 30,
        cached_input_tokens: 1024,
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
          'gen_ai.tool.definitions': [
            { type: 'function', function: { name: 'search', parameters: { type: 'object' } } },
          ],
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

  it('concatenates the parts of an answer and shows a refusal', () => {
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

  it('keeps the outcome, the error and nothing else of a call that failed without an answer', () => {
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

  it('never replaces an attribute that the sender wrote', () => {
    const span = decodeOne(
      'chatcompletion',
      openAiToolCall({ attributes: { tool_calls: 'mine', 'gen_ai.response.id': 7 } }),
    );
    expect(span.attributes).toMatchObject({ tool_calls: 'mine', 'gen_ai.response.id': 7 });
  });
});

describe('messages', () => {
  it('puts the system prompt first, joins text blocks, and counts cached tokens into the input', () => {
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

  it('takes a system prompt that is a string', () => {
    const span = decodeOne('messages', withField(anthropicToolUse(), ['request', 'system'], 'Be brief.'));
    expect((JSON.parse(span.prompt) as unknown[])[0]).toEqual({ role: 'system', content: 'Be brief.' });
  });
});

describe('chain', () => {
  it('is a span named after the chain and a tool child for each step', () => {
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

  it('lays the steps in order within the time of the chain', () => {
    const [chain, ...steps] = decode('chain', langChainRun({ duration_ms: 1000 }));
    expect(steps.map(({ started_at, ended_at }) => [started_at - NOW, ended_at - NOW])).toEqual([
      [-1000, -667],
      [-667, -334],
      [-334, 0],
    ]);
    expect(chain).toMatchObject({ started_at: NOW - 1000, ended_at: NOW });
  });
});

describe('custom', () => {
  it('is a tool with its input as prompt and its output as response, which stay in attributes', () => {
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

  it('keeps an event_type beside another one in its attributes, and is kept by sampling for either', () => {
    const sent = { name: 'step', event_type: 'loop', outcome: 'success', attributes: { event_type: 'click' } };
    const span = decodeOne('custom', sent);
    expect(span.attributes).toEqual({ event_type: 'click', 'event.event_type': 'loop' });
    expect(keepRule([span], 5000)).toBe('loop');
    expect(
      keepRule([decodeOne('custom', { ...sent, event_type: 'click', attributes: { event_type: 'loop' } })], 5000),
    ).toBe('loop');
  });

  it('is an event by default, named by event_type', () => {
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
  ])('is a priced llm span with usage in %s', (_name, usage) => {
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
});

describe('cached tokens beyond the input tokens', () => {
  const about = { outcome: 'success', duration_ms: 1 };
  const messages = [{ role: 'user', content: 'Hi' }];
  const chat = (cached_tokens: number) => ({
    ...about,
    request: { model: 'gpt-4o', messages },
    response: {
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens } },
    },
  });
  const hits = (prompt_cache_hit_tokens: number) => ({
    ...about,
    request: { model: 'gpt-4o', messages },
    response: { choices: [], usage: { prompt_tokens: 10, completion_tokens: 1, prompt_cache_hit_tokens } },
  });
  const call = (cached_tokens: number) => ({
    ...about,
    operation: 'responses',
    request: { model: 'gpt-4o', input: 'Hi' },
    response: { usage: { input_tokens: 10, output_tokens: 1, input_tokens_details: { cached_tokens } } },
  });
  const custom = (cached_input_tokens: number) => ({
    ...about,
    name: 'answer',
    attributes: { span_kind: 'llm', model: 'gpt-4o', input_tokens: 10, output_tokens: 1, cached_input_tokens },
  });

  it.each([
    ['chatcompletion', 'chatcompletion', chat],
    ['chatcompletion of another vendor', 'chatcompletion', hits],
    ['gateway', 'gateway', call],
    ['custom', 'custom', custom],
  ] as const)('are capped in %s, and cost as much as if all input tokens were cached', (_, format, event) => {
    const whole = decodeOne(format, event(10));
    expect(whole.cost_pico_usd > 0n).toBe(true);
    const { input_tokens, cached_input_tokens, cost_pico_usd, price } = decodeOne(format, event(1_000_000));
    expect({ input_tokens, cached_input_tokens, cost_pico_usd, price }).toEqual({
      input_tokens: 10,
      cached_input_tokens: 10,
      cost_pico_usd: whole.cost_pico_usd,
      price: whole.price,
    });
  });

  it('are part of the input in messages, whose vendor counts them apart', () => {
    const usage = { input_tokens: 10, cache_read_input_tokens: 1000, output_tokens: 1 };
    const event = {
      ...about,
      request: { model: 'claude-sonnet-4-5', messages, max_tokens: 5 },
      response: { content: [], usage },
    };
    expect(decodeOne('messages', event)).toMatchObject({ input_tokens: 1010, cached_input_tokens: 1000 });
  });
});

describe('app', () => {
  it('is a point of a session', () => {
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
  ])('attributes.outcome %s makes it a %s', (stated, outcome) => {
    expect(decodeOne('app', pageView({ attributes: { outcome: stated } })).outcome).toBe(outcome);
  });
});

describe('every format', () => {
  it.each([
    [{ attributes: { session_id: 's1', user_id: 'u1' } }, 's1', 'u1'],
    [{ attributes: { 'session.id': 's2', 'enduser.id': 'u2' } }, 's2', 'u2'],
    [{ attributes: { 'user.id': 42 } }, '', '42'],
    [{ attributes: { user_id: 'u'.repeat(513), session_id: { a: 1 } } }, '', ''],
  ])('%j: session and user', (over, session_id, user_id) => {
    expect(decodeOne('chatcompletion', openAiAnswer(over))).toMatchObject({ session_id, user_id });
  });

  it('takes times as given and keeps a duration that says otherwise', () => {
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

  it('makes a span that is its own parent a root', () => {
    expect(decodeOne('custom', customTool({ span_id: 'a', parent_span_id: 'a' })).parent_span_id).toBe('');
    expect(decodeOne('custom', customTool({ span_id: 'a', parent_span_id: 'b' }))).toMatchObject({
      span_id: 'a',
      parent_span_id: 'b',
    });
  });

  it('makes every text well-formed, so that the store can hold it', () => {
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

  it('keeps a hostile __proto__ key from changing anything', () => {
    const body =
      '{"name":"x","outcome":"success","__proto__":{"kind":"evil"},"attributes":{"__proto__":{"polluted":true}}}';
    const outcomes = stage.run([{ ...logged('custom', {}), body }]);
    expect(outcomes[0]?.kind).toBe('emit');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('tokens and price', () => {
  it('estimates the calls of tools and what was reasoned as output, and their definitions as input', () => {
    const usage = ['response', 'usage'];
    const plain = decodeOne('chatcompletion', withField(openAiAnswer(), usage, undefined));
    const called = decodeOne('chatcompletion', withField(openAiToolCall(), usage, undefined));
    expect(called.response).toBe('');
    expect(called.output_tokens).toBeGreaterThan(10);
    const defined = withField(
      withField(openAiAnswer(), usage, undefined),
      ['request', 'tools'],
      [{ type: 'function', function: { name: 'book_a_flight_to_somewhere' } }],
    );
    expect(decodeOne('chatcompletion', defined).input_tokens).toBeGreaterThan(plain.input_tokens + 5);
  });

  it('says that tokens of no model have no price', () => {
    const tokens = { span_kind: 'llm', input_tokens: 1000, output_tokens: 10 };
    expect(decodeOne('custom', customTool({ attributes: tokens })).attributes['price_missing']).toBe(true);
    expect(decodeOne('custom', customTool({ attributes: { span_kind: 'llm' } })).attributes).not.toHaveProperty(
      'price_missing',
    );
    expect(decodeOne('custom', customTool({ attributes: { ...tokens, cost_usd: 1 } })).attributes).not.toHaveProperty(
      'price_missing',
    );
  });

  it('estimates usage that is missing, and says so', () => {
    const span = decodeOne('chatcompletion', withField(openAiAnswer(), ['response', 'usage'], undefined));
    expect(span.attributes['tokens_estimated']).toBe(true);
    expect(span.input_tokens).toBeGreaterThan(3);
    expect(span.output_tokens).toBe(2);
    expect(span.cost_pico_usd).toBeGreaterThan(0n);
  });

  it('estimates only the part that is missing', () => {
    expect(
      decodeOne('chatcompletion', withField(openAiAnswer(), ['response', 'usage'], { prompt_tokens: 77 })),
    ).toMatchObject({
      input_tokens: 77,
      output_tokens: 2,
    });
  });

  it('takes a given cost before any price', () => {
    const span = decodeOne('chatcompletion', openAiAnswer({ attributes: { cost_usd: 0.1 } }));
    expect(span).toMatchObject({ cost_pico_usd: usdToPico('0.1'), price: { source: 'given' } });
    expect(decodeOne('custom', customTool({ attributes: { cost_usd: '0.000000000001' } })).cost_pico_usd).toBe(1n);
  });

  it('marks a model without a price', () => {
    const span = decodeOne('chatcompletion', withField(openAiAnswer(), ['request', 'model'], 'in-house-7b'));
    const unnamed = decodeOne(
      'chatcompletion',
      withField(withField(openAiAnswer(), ['request', 'model'], 'in-house-7b'), ['response', 'model'], null),
    );
    // The answered model's name has a price; without it there is none.
    expect(span.price.source).toContain('gpt-4o');
    expect(unnamed).toMatchObject({
      cost_pico_usd: 0n,
      price: { source: 'missing' },
      attributes: { price_missing: true },
    });
    expect(decodeOne('custom', customTool()).attributes).not.toHaveProperty('price_missing');
  });

  it('takes sandbox seconds from attributes', () => {
    expect(decodeOne('custom', customTool({ attributes: { sandbox_seconds: 1.25 } })).sandbox_seconds).toBe(1.25);
    expect(decodeOne('custom', customTool({ attributes: { sandbox_seconds: '2.5' } })).sandbox_seconds).toBe(2.5);
  });

  it.each([
    ['chatcompletion', openAiAnswer()],
    ['messages', anthropicToolUse()],
    ['chain', langChainRun()],
    ['custom', customTool()],
    ['app', pageView()],
  ] as const)('takes the amounts of a %s event beside its attributes too, where those have none', (format, event) => {
    const beside = { cost_usd: '0.1', sandbox_seconds: 7 };
    expect(decodeOne(format, { ...event, ...beside })).toMatchObject({
      cost_pico_usd: usdToPico('0.1'),
      sandbox_seconds: 7,
    });
    const both = { ...event, ...beside, attributes: { cost_usd: 0.2, sandbox_seconds: '8' } };
    expect(decodeOne(format, both)).toMatchObject({ cost_pico_usd: usdToPico('0.2'), sandbox_seconds: 8 });
    expect(stage.run([logged(format, { ...event, cost_usd: -5 })])).toMatchObject([
      { kind: 'dead', detail: expect.stringMatching(/^cost_usd: /) as unknown },
    ]);
  });
});

describe('max_prompt_tokens', () => {
  const bounded = createDecodeStage({
    prices: createPriceBook(() => []),
    maxPromptTokens: (org) => (org === 'org_a' ? 100 : null),
    redactorOf: () => null,
  });
  const long = 'The agent walked to the river and back again. '.repeat(100);

  it('cuts the conversation, keeps it valid JSON, and says so', () => {
    const messages = [
      { role: 'system', content: 'Short.' },
      { role: 'user', content: long },
      { role: 'user', content: 'last' },
    ];
    const span = decodeOne('chatcompletion', withField(openAiAnswer(), ['request', 'messages'], messages), bounded);
    const kept = JSON.parse(span.prompt) as { content: string }[];
    expect(kept).toHaveLength(2);
    expect(kept[0]?.content).toBe('Short.');
    expect(long.startsWith(kept[1]?.content ?? 'x')).toBe(true);
    expect(span.prompt.length).toBeGreaterThan(250);
    expect(span.prompt.length).toBeLessThan(650);
    expect(span.attributes['prompt_truncated']).toBe(true);
    expect(span.input_tokens).toBe(10);
  });

  it.each([
    ['a text', { input: long, prompt: long, note: 'kept' }],
    ['JSON', { input: { question: long } }],
    [
      'the messages of a model call',
      { span_kind: 'llm', model: 'gpt-4o', messages: [{ role: 'user', content: long }] },
    ],
  ])('leaves no more of %s in the attributes that repeat it', (_, attributes) => {
    const span = decodeOne('custom', customTool({ event_type: 'step', attributes }), bounded);
    expect(span.attributes).toMatchObject({ prompt_truncated: true });
    expect(JSON.stringify(span.attributes).length).toBeLessThan(3 * span.prompt.length);
    const stored = foldTexts(span.attributes, span.prompt, span.response);
    expect(JSON.stringify(stored)).not.toContain('river');
    expect(unfoldTexts(stored, span.prompt, span.response)).toEqual(span.attributes);
    if ('messages' in attributes) expect(span.attributes['messages']).toEqual(JSON.parse(span.prompt));
    else expect(span.attributes['input']).toBe(span.prompt);
  });

  it.each([
    [
      'parts',
      'messages',
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'First.' },
            { type: 'text', text: long },
          ],
        },
      ],
    ],
    ['a pair', 'chain', [['human', long]]],
    ['a text alone', 'chain', [long]],
  ] as const)('cuts a message whose text is in %s', (_, format, messages) => {
    const event = format === 'chain' ? langChainRun() : anthropicToolUse();
    const span = decodeOne(format, withField(event, ['request', 'messages'], messages), bounded);
    expect(span.attributes['prompt_truncated']).toBe(true);
    const kept = JSON.parse(span.prompt) as unknown[];
    expect(JSON.stringify(kept)).toContain('The agent walked to the river');
    expect(span.prompt.length).toBeGreaterThan(250);
    expect(span.prompt.length).toBeLessThan(650);
  });

  it('cuts what begins with words of many tokens to the limit too', () => {
    const dense = '川へ歩いて帰った。'.repeat(100) + long.repeat(3);
    const span = decodeOne('custom', customTool({ attributes: { input: dense } }), bounded);
    expect(estimateTokens(span.prompt)).toBeLessThanOrEqual(110);
    expect(estimateTokens(span.prompt)).toBeGreaterThan(50);
  });

  it("cuts the prompts of a chain's tools", () => {
    const [, tool] = decode(
      'chain',
      withField(langChainRun(), ['intermediate_steps'], [[`search(${long})`, 'found']]),
      bounded,
    );
    expect([tool?.name, tool?.attributes['prompt_truncated'], (tool?.prompt.length ?? 0) < 650]).toEqual([
      'search',
      true,
      true,
    ]);
  });

  it('cuts a plain prompt, and leaves what is short enough alone', () => {
    const span = decodeOne('custom', customTool({ attributes: { input: long } }), bounded);
    expect(long.startsWith(span.prompt) && span.prompt.length < 650).toBe(true);
    expect(decodeOne('chatcompletion', openAiAnswer(), bounded).attributes).not.toHaveProperty('prompt_truncated');
  });
});

describe('the stage', () => {
  it.each([
    ['no JSON', 'custom', '{'],
    ['another shape', 'chatcompletion', '{"request":{}}'],
    ['a scalar', 'custom', '7'],
    ['a call of the gateway that is none', 'gateway', '{}'],
  ] as const)('turns %s into a dead letter with its reason', (_name, format, body) => {
    const [outcome] = stage.run([{ ...logged('custom', {}), format, body }]);
    expect(outcome).toMatchObject({ kind: 'dead', reason: 'decode_failed' });
    expect(outcome?.kind === 'dead' && outcome.detail.length > 0).toBe(true);
  });

  it('names the field in the detail', () => {
    expect(stage.run([logged('chatcompletion', openAiAnswer({ outcome: 'odd' }))])[0]).toMatchObject({
      detail: expect.stringContaining('outcome') as unknown,
    });
  });

  it('gives one outcome for each input, in order, whatever comes in', () => {
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
          if (outcome.kind === 'emit')
            expect(outcome.out).toMatchObject({ partition: 3, log_seq: 17, log_index: index });
        }
      }),
    );
  });

  it('gives the same spans for the same event', () => {
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

  it('puts into every numeric column what it can hold', () => {
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
});
