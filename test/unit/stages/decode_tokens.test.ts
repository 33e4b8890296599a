// The decode stage reads, bounds and estimates tokens, and computes the cost of a span from them.
import { expect, it } from 'vitest';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
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
] as const)(
  'cached tokens of %s are capped at the input tokens and priced as if all input were cached',
  (_, format, event) => {
    const whole = decodeOne(format, event(10));
    expect(whole.cost_pico_usd > 0n).toBe(true);
    const { input_tokens, cached_input_tokens, cost_pico_usd, price } = decodeOne(format, event(1_000_000));
    expect({ input_tokens, cached_input_tokens, cost_pico_usd, price }).toEqual({
      input_tokens: 10,
      cached_input_tokens: 10,
      cost_pico_usd: whole.cost_pico_usd,
      price: whole.price,
    });
  },
);

it('cached tokens of a messages event count into its input, because the vendor counts them apart', () => {
  const usage = { input_tokens: 10, cache_read_input_tokens: 1000, output_tokens: 1 };
  const event = {
    ...about,
    request: { model: 'claude-sonnet-4-5', messages, max_tokens: 5 },
    response: { content: [], usage },
  };
  expect(decodeOne('messages', event)).toMatchObject({ input_tokens: 1010, cached_input_tokens: 1000 });
});

it('estimated output includes tool calls and reasoning, and estimated input includes tool definitions', () => {
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

it('a span with tokens and no model is marked as price_missing', () => {
  const tokens = { span_kind: 'llm', input_tokens: 1000, output_tokens: 10 };
  expect(decodeOne('custom', customTool({ attributes: tokens })).attributes['price_missing']).toBe(true);
  expect(decodeOne('custom', customTool({ attributes: { span_kind: 'llm' } })).attributes).not.toHaveProperty(
    'price_missing',
  );
  expect(decodeOne('custom', customTool({ attributes: { ...tokens, cost_usd: 1 } })).attributes).not.toHaveProperty(
    'price_missing',
  );
});

it('missing usage is estimated and the span is marked as tokens_estimated', () => {
  const span = decodeOne('chatcompletion', withField(openAiAnswer(), ['response', 'usage'], undefined));
  expect(span.attributes['tokens_estimated']).toBe(true);
  expect(span.input_tokens).toBeGreaterThan(3);
  expect(span.output_tokens).toBe(2);
  expect(span.cost_pico_usd).toBeGreaterThan(0n);
});

it('only the missing part of the usage is estimated', () => {
  expect(
    decodeOne('chatcompletion', withField(openAiAnswer(), ['response', 'usage'], { prompt_tokens: 77 })),
  ).toMatchObject({
    input_tokens: 77,
    output_tokens: 2,
  });
});

it('a cost that the sender gives takes precedence over any price', () => {
  const span = decodeOne('chatcompletion', openAiAnswer({ attributes: { cost_usd: 0.1 } }));
  expect(span).toMatchObject({ cost_pico_usd: usdToPico('0.1'), price: { source: 'given' } });
  expect(decodeOne('custom', customTool({ attributes: { cost_usd: '0.000000000001' } })).cost_pico_usd).toBe(1n);
});

it('a span whose model has no price is marked as price_missing', () => {
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

it('sandbox seconds are read from attributes as a number or a text', () => {
  expect(decodeOne('custom', customTool({ attributes: { sandbox_seconds: 1.25 } })).sandbox_seconds).toBe(1.25);
  expect(decodeOne('custom', customTool({ attributes: { sandbox_seconds: '2.5' } })).sandbox_seconds).toBe(2.5);
});

it.each([
  ['chatcompletion', openAiAnswer()],
  ['messages', anthropicToolUse()],
  ['chain', langChainRun()],
  ['custom', customTool()],
  ['app', pageView()],
] as const)(
  'cost and sandbox seconds of a %s event are read beside its attributes where the attributes have none',
  (format, event) => {
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
  },
);
