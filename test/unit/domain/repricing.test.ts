// The cost of a stored call by other prices: the same as if it arrived now, or unknown.
import { describe, expect, it } from 'vitest';
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { createPriceBook, type OrgPrice, type PriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import {
  COUNTING_ATTRIBUTES,
  COUNTING_PREFIX,
  differs,
  repriced,
  type StoredCall,
} from '../../../pipeline/domain/pricing/repricing.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import type { SourceFormat } from '../../../schemas/codec.ts';

const AT = Date.parse('2026-06-15T12:00:00Z');
const table = createPriceBook(() => []);
const orgBook = (...prices: OrgPrice[]): PriceBook => createPriceBook(() => prices);

function decoded(format: SourceFormat, body: Record<string, unknown>, prices: PriceBook): Span {
  const text = JSON.stringify({ started_at: new Date(AT).toISOString(), duration_ms: 10, outcome: 'success', ...body });
  const raw = {
    org_id: 'org_a',
    format,
    event_hex: '00000000000000aa',
    trace_id: 'trc_1',
    received_at: AT + 1000,
    body: text,
  };
  const spans = spansOf({ prices, maxPromptTokens: () => null, redactorOf: () => null }, raw, JSON.parse(text));
  const [span] = typeof spans === 'string' ? [] : spans;
  if (span === undefined) throw new Error(typeof spans === 'string' ? spans : 'an event has a span');
  return span;
}

/** Returns a span as it is read back: its columns, and the attributes with its counts. */
function stored(span: Span, sampled = true): StoredCall {
  const names: readonly string[] = COUNTING_ATTRIBUTES;
  const attributes = Object.fromEntries(
    Object.entries(span.attributes).filter(
      ([name]) => sampled && (names.includes(name) || name.startsWith(COUNTING_PREFIX)),
    ),
  );
  return { ...span, sampled, attributes: JSON.parse(JSON.stringify(attributes)) as Record<string, unknown> };
}

const chat = (model: string, usage: Record<string, unknown>, answered = model): Record<string, unknown> => ({
  request: { model, messages: [{ role: 'user', content: 'hi' }] },
  response: {
    id: 'r',
    model: answered,
    choices: [{ index: 0, message: { role: 'assistant', content: 'answer' }, finish_reason: 'stop' }],
    usage,
  },
});
const anthropic = (usage: Record<string, unknown>): Record<string, unknown> => ({
  request: { model: 'claude-sonnet-4-5', messages: [{ role: 'user', content: 'hi' }], max_tokens: 10 },
  response: {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content: [{ type: 'text', text: 'answer' }],
    stop_reason: 'end_turn',
    usage,
  },
});

const CALLS: [string, SourceFormat, Record<string, unknown>][] = [
  [
    'cached tokens',
    'chatcompletion',
    chat('gpt-4o', {
      prompt_tokens: 1000,
      completion_tokens: 77,
      total_tokens: 1077,
      prompt_tokens_details: { cached_tokens: 300 },
    }),
  ],
  [
    'audio',
    'chatcompletion',
    chat('gpt-4o-audio-preview', {
      prompt_tokens: 1000,
      completion_tokens: 50,
      total_tokens: 1050,
      prompt_tokens_details: { audio_tokens: 200 },
      completion_tokens_details: { audio_tokens: 20 },
    }),
  ],
  [
    'a deployment that only its answer names',
    'chatcompletion',
    chat('my-deployment', { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }, 'gpt-4o'),
  ],
  [
    'estimated tokens',
    'chatcompletion',
    {
      request: { model: 'gpt-4o', messages: [{ role: 'user', content: 'hi there' }] },
      response: { choices: [{ index: 0, message: { role: 'assistant', content: 'an answer' } }] },
    },
  ],
  [
    'cache writes of both kinds',
    'messages',
    anthropic({
      input_tokens: 100,
      output_tokens: 9,
      cache_read_input_tokens: 50,
      cache_creation_input_tokens: 40,
      cache_creation: { ephemeral_1h_input_tokens: 30 },
    }),
  ],
  [
    'a step that is a call',
    'custom',
    {
      name: 'ask',
      attributes: {
        span_kind: 'llm',
        model: 'claude-sonnet-4-5',
        provider: 'anthropic',
        usage: { input_tokens: 10, output_tokens: 3, cache_creation_input_tokens: 7 },
      },
    },
  ],
  [
    'a chain',
    'chain',
    {
      chain_name: 'c',
      request: { model: 'gpt-4o', messages: [{ role: 'user', content: 'q' }] },
      response: {
        generations: [[{ text: 'a' }]],
        llm_output: {
          token_usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
          model_name: 'gpt-4o',
        },
      },
      intermediate_steps: [['search(x)', 'found']],
    },
  ],
  [
    'a span of OpenTelemetry',
    'otlp',
    {
      span: {
        trace_id: '5b8efff798038103d269b633813fc60c',
        span_id: 'eee19b7ec3c1b174',
        name: 'call',
        start_time_unix_nano: `${AT}000000`,
        end_time_unix_nano: `${AT}000000`,
        attributes: {
          'openinference.span.kind': 'LLM',
          'llm.model_name': 'my-deployment',
          'gen_ai.response.model': 'gpt-4o',
          'llm.token_count.prompt': 100,
          'llm.token_count.completion': 10,
          'llm.token_count.prompt_details.cache_read': 60,
        },
      },
    },
  ],
];

describe('repriced', () => {
  it.each(CALLS)('repricing gives what decode would give now: %s', (_what, format, body) => {
    const own = orgBook(
      { model: 'gpt-4o', input_usd_per_mtok: 0.7, output_usd_per_mtok: 0.3, cached_input_usd_per_mtok: 0.01 },
      { model: 'claude-sonnet-4-5', input_usd_per_mtok: 0.9, output_usd_per_mtok: 1.1 },
    );
    for (const [before, now] of [
      [table, own],
      [own, table],
      [table, table],
    ] as const) {
      const was = decoded(format, body, before);
      const { cost_pico_usd, price } = decoded(format, body, now);
      expect(was.price.source).not.toBe('');
      expect(repriced(now, stored(was))).toEqual({ cost_pico_usd, price });
      expect(differs(was, { cost_pico_usd, price })).toBe(
        cost_pico_usd !== was.cost_pico_usd || price.source !== was.price.source,
      );
    }
  });

  it('a call without attributes is repriced by its columns, where they explain its cost', () => {
    const [, format, body] = CALLS[0] ?? ['', 'chatcompletion', {}];
    const was = decoded(format, body, table);
    const own = orgBook({ model: 'gpt-4o', input_usd_per_mtok: 0.7, output_usd_per_mtok: 0.3 });
    const { cost_pico_usd, price } = decoded(format, body, own);
    expect(repriced(own, stored(was, false))).toEqual({ cost_pico_usd, price });
    expect(repriced(table, stored(decoded(format, body, own), false))).toMatchObject({
      cost_pico_usd: was.cost_pico_usd,
    });
  });

  it('a call whose counting attributes are gone is left alone', () => {
    const [, format, body] = CALLS[4] ?? ['', 'messages', {}];
    const was = decoded(format, body, table);
    expect(repriced(table, stored(was, false))).toBeNull();
    expect(
      repriced(
        orgBook({ model: 'claude-sonnet-4-5', input_usd_per_mtok: 1, output_usd_per_mtok: 1 }),
        stored(was, false),
      ),
    ).toBeNull();
  });

  it('repricing finds a price for a call that had none, and removes it again', () => {
    const body = chat('nobody-knows-it', { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 });
    const was = decoded('chatcompletion', body, table);
    expect(was.price.source).toBe('missing');
    const own = orgBook({ model: 'nobody-knows-it', input_usd_per_mtok: 1, output_usd_per_mtok: 1 });
    for (const sampled of [true, false]) expect(repriced(own, stored(was, sampled))?.cost_pico_usd).toBe(11_000_000n);
    expect(repriced(table, stored(decoded('chatcompletion', body, own)))).toMatchObject({
      cost_pico_usd: 0n,
      price: { source: 'missing' },
    });
  });
});

describe('differs', () => {
  const price = {
    source: 'genai-prices@1.0.0:openai/gpt-4o',
    input_usd_per_mtok: 1,
    output_usd_per_mtok: 2,
    cached_input_usd_per_mtok: null,
  };
  const is = (over: Partial<typeof price>, cost = 5n): boolean =>
    differs({ cost_pico_usd: 5n, price }, { cost_pico_usd: cost, price: { ...price, ...over } });
  it('another version of the table with the same price is no difference', () => {
    expect(is({ source: 'genai-prices@1.0.1:openai/gpt-4o' })).toBe(false);
  });
  it('another cost, source or price is a difference', () => {
    expect([
      is({}, 6n),
      is({ source: 'org' }),
      is({ source: 'genai-prices@1.0.0:azure/gpt-4o' }),
      is({ output_usd_per_mtok: 3 }),
    ]).toEqual([true, true, true, true]);
  });
});
