// Prices: exact to a pico-USD, dated, tiered, with cached tokens, and the organization's own before
// the table's.
import { calcPrice, waitForUpdate } from '@pydantic/genai-prices';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import {
  createPriceBook,
  givenPrice,
  type OrgPrice,
  type PricedUsage,
} from '../../../pipeline/domain/pricing/pricing.ts';
import { TABLE_NAME } from '../../../pipeline/domain/pricing/price_table.ts';

const table = createPriceBook(() => []);
const AT = Date.parse('2026-06-01T12:00:00Z');

function usage(over: Partial<PricedUsage> = {}): PricedUsage {
  return {
    input_tokens: 0,
    output_tokens: 0,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    cache_write_1h_tokens: 0,
    input_audio_tokens: 0,
    output_audio_tokens: 0,
    ...over,
  };
}

function priceOf(model: string, over: Partial<PricedUsage>, provider: string | null = null, at = AT) {
  return table.price({ org_id: 'org_a', models: [model], provider, at, usage: usage(over) });
}

describe('the table', () => {
  it('the table prices a plain call to the pico-USD and names the price', () => {
    expect(priceOf('gpt-4o', { input_tokens: 1000, output_tokens: 100 }, 'openai')).toEqual({
      cost_pico_usd: usdToPico('0.0035'),
      price: {
        source: `${TABLE_NAME}:openai/gpt-4o`,
        input_usd_per_mtok: 2.5,
        output_usd_per_mtok: 10,
        cached_input_usd_per_mtok: null,
      },
    });
    expect(TABLE_NAME).toMatch(/^genai-prices@\d+\.\d+\.\d+$/);
  });

  it('the table prices cached input tokens at their own rate', () => {
    const priced = priceOf('gpt-4o', { input_tokens: 1000, cached_input_tokens: 600, output_tokens: 100 }, 'openai');
    expect(priced.cost_pico_usd).toBe(usdToPico('0.00275'));
    expect(priced.price.cached_input_usd_per_mtok).toBe(1.25);
  });

  it('the table counts no more cached input tokens than there are input tokens', () => {
    const whole = priceOf('gpt-4o', { input_tokens: 10, cached_input_tokens: 10, output_tokens: 1 }, 'openai');
    expect(priceOf('gpt-4o', { input_tokens: 10, cached_input_tokens: 1_000_000, output_tokens: 1 }, 'openai')).toEqual(
      whole,
    );
    expect(priceOf('gpt-4o', { input_tokens: 0, cached_input_tokens: 1_000_000 }, 'openai').cost_pico_usd).toBe(0n);
  });

  it('a call costs at least nothing and at most all tokens at their highest rate, whatever parts a sender names', () => {
    const count = fc.nat(1_000_000);
    const parts = fc.record({
      input_tokens: count,
      output_tokens: count,
      cached_input_tokens: count,
      cache_write_tokens: count,
      cache_write_1h_tokens: count,
      input_audio_tokens: count,
      output_audio_tokens: count,
    });
    fc.assert(
      fc.property(parts, fc.constantFrom('gpt-4o-audio-preview', 'claude-sonnet-4-5', 'gpt-4o'), (given, model) => {
        const { cost_pico_usd } = priceOf(model, given);
        // 100 USD per million input tokens and 200 per million output tokens exceed every rate of
        // these models.
        expect(cost_pico_usd >= 0n).toBe(true);
        expect(
          cost_pico_usd <= BigInt(given.input_tokens) * 100_000_000n + BigInt(given.output_tokens) * 200_000_000n,
        ).toBe(true);
      }),
    );
  });

  it('the table prices cache writes at their own rates, by the time they are kept', () => {
    const parts = {
      input_tokens: 5050,
      cached_input_tokens: 3000,
      cache_write_tokens: 500,
      cache_write_1h_tokens: 1500,
      output_tokens: 40,
    };
    // 50 × 3 + 3000 × 0.3 + 500 × 3.75 + 1500 × 6 + 40 × 15 USD per million
    expect(priceOf('claude-sonnet-4-20250514', parts, 'anthropic').cost_pico_usd).toBe(usdToPico('0.012525'));
  });

  it.each([
    [200_000, '0.25'],
    [200_001, '0.5000025'],
  ])('the table uses the tier of %i input tokens', (input_tokens, usd) => {
    expect(priceOf('gemini-2.5-pro', { input_tokens }).cost_pico_usd).toBe(usdToPico(usd));
  });

  it('the table uses the price of the day of the call', () => {
    const before = priceOf(
      'claude-opus-4-6',
      { input_tokens: 300_000 },
      'anthropic',
      Date.parse('2026-03-12T23:59:59Z'),
    );
    const after = priceOf(
      'claude-opus-4-6',
      { input_tokens: 300_000 },
      'anthropic',
      Date.parse('2026-03-13T00:00:00Z'),
    );
    expect([before.cost_pico_usd, after.cost_pico_usd]).toEqual([usdToPico(3), usdToPico('1.5')]);
  });

  it('the table uses the price of the hour where the vendor charges by the hour', () => {
    const at = (time: string) =>
      priceOf('deepseek-chat', { input_tokens: 1_000_000 }, null, Date.parse(`2025-06-01T${time}Z`)).cost_pico_usd;
    expect([at('00:29:59'), at('00:30:00'), at('16:29:59'), at('16:30:00')]).toEqual([
      usdToPico('0.135'),
      usdToPico('0.27'),
      usdToPico('0.27'),
      usdToPico('0.135'),
    ]);
  });

  it.each([
    ['gpt-4o', 'anthropic', 'openai/gpt-4o'],
    ['openai/gpt-4o', null, 'openai/gpt-4o'],
    ['anthropic:claude-sonnet-4-20250514', null, 'anthropic/claude-sonnet-4-0'],
    ['us.anthropic.claude-sonnet-4-20250514-v1:0', null, 'aws/'],
    ['llama-3.3-70b-versatile', null, 'groq/llama-3.3-70b-versatile'],
  ])('the table finds %s', (model, provider, id) => {
    expect(priceOf(model, { input_tokens: 1 }, provider).price.source).toContain(`:${id}`);
  });

  it.each(['no-such-model', 'my-private-llm', 'x', '/', ':', 'a/b', 'gpt', '.anthropic.'])(
    'the table has no price for %j',
    (model) => {
      expect(priceOf(model, { input_tokens: 1000 }, 'openai')).toMatchObject({
        cost_pico_usd: 0n,
        price: { source: 'missing', input_usd_per_mtok: null },
      });
    },
  );

  it('the answered model is looked up where the requested name has no price', () => {
    const call = {
      org_id: 'org_a',
      models: ['my-deployment', 'gpt-4o-2024-08-06'],
      provider: 'openai',
      at: AT,
      usage: usage({ input_tokens: 1000 }),
    };
    expect(table.price(call).cost_pico_usd).toBe(usdToPico('0.0025'));
  });
});

describe('exactness', () => {
  it('prices agree with the package over its whole table, within the error of its floating point', async () => {
    const providers = (await waitForUpdate()) ?? [];
    const timestamp = new Date(AT);
    let compared = 0;
    for (const provider of providers) {
      for (const { id } of provider.models) {
        const theirs = calcPrice({ input_tokens: 123_457, cache_read_tokens: 2311, output_tokens: 7919 }, id, {
          providerId: provider.id,
          timestamp,
        });
        if (theirs === null) continue;
        const ours = priceOf(
          id,
          { input_tokens: 123_457, cached_input_tokens: 2311, output_tokens: 7919 },
          provider.id,
        );
        expect(ours.price.source, id).toBe(`${TABLE_NAME}:${theirs.provider.id}/${theirs.model.id}`);
        expect(Number(ours.cost_pico_usd) / 1e12, `${provider.id}/${id}`).toBeCloseTo(theirs.total_price, 9);
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(1000);
  });

  it('prices equal decimal arithmetic on the published price, for any number of tokens', () => {
    const published = calcPrice({}, 'gpt-4o-mini', { providerId: 'openai', timestamp: new Date(AT) })?.model_price;
    expect(published).toMatchObject({ input_mtok: 0.15, cache_read_mtok: 0.075, output_mtok: 0.6 });
    const tokens = fc.nat(1_000_000_000);
    fc.assert(
      fc.property(tokens, tokens, tokens, (uncached, cachedTokens, outputTokens) => {
        const priced = priceOf(
          'gpt-4o-mini',
          { input_tokens: uncached + cachedTokens, cached_input_tokens: cachedTokens, output_tokens: outputTokens },
          'openai',
        );
        // USD per million tokens = pico-USD per token × 1e6
        expect(priced.cost_pico_usd).toBe(
          BigInt(uncached) * 150_000n + BigInt(cachedTokens) * 75_000n + BigInt(outputTokens) * 600_000n,
        );
      }),
    );
  });

  it('a cost never exceeds what the cost column holds', () => {
    const dear: OrgPrice[] = [{ model: 'm', input_usd_per_mtok: 1e9, output_usd_per_mtok: 0 }];
    const priced = createPriceBook(() => dear).price({
      org_id: 'o',
      models: ['m'],
      provider: null,
      at: AT,
      usage: usage({ input_tokens: 1_000_000_000 }),
    });
    expect(priced.cost_pico_usd).toBe(10n ** 18n - 1n);
  });
});

describe("an org's own prices", () => {
  const prices: OrgPrice[] = [
    { model: 'GPT-4o', input_usd_per_mtok: 2, output_usd_per_mtok: 8, from: '2026-06-02' },
    { model: 'gpt-4o', input_usd_per_mtok: 1, output_usd_per_mtok: 4, cached_input_usd_per_mtok: 0.5 },
  ];
  const book = createPriceBook((org) => (org === 'org_a' ? prices : []));
  const call = (org_id: string, at: string, over: Partial<PricedUsage>) =>
    book.price({ org_id, models: ['gpt-4o'], provider: 'openai', at: Date.parse(at), usage: usage(over) });

  it("an organization's own prices precede the table, from their day on, and only for the organization", () => {
    expect(call('org_a', '2026-06-01T23:59:59Z', { input_tokens: 1000 })).toMatchObject({
      cost_pico_usd: usdToPico('0.001'),
      price: { source: 'org', input_usd_per_mtok: 1 },
    });
    expect(call('org_a', '2026-06-02T00:00:00Z', { input_tokens: 1000 }).cost_pico_usd).toBe(usdToPico('0.002'));
    expect(call('org_b', '2026-06-02T00:00:00Z', { input_tokens: 1000 }).price.source).toContain('openai/gpt-4o');
  });

  it("an organization's own prices charge cached tokens at the input price where they name none", () => {
    const over = { input_tokens: 1000, cached_input_tokens: 1000 };
    expect(call('org_a', '2026-06-01T00:00:00Z', over).cost_pico_usd).toBe(usdToPico('0.0005'));
    expect(call('org_a', '2026-06-03T00:00:00Z', over).cost_pico_usd).toBe(usdToPico('0.002'));
  });

  it("an organization's own price that has ended gives way to an earlier one, then to the table", () => {
    const ended: OrgPrice[] = [
      { model: 'gpt-4o', input_usd_per_mtok: 1, output_usd_per_mtok: 4, from: '2026-06-01', until: '2026-08-01' },
      { model: 'gpt-4o', input_usd_per_mtok: 2, output_usd_per_mtok: 8, from: '2026-07-01', until: '2026-07-02' },
    ];
    const priced = (at: string) =>
      createPriceBook(() => ended).price({
        org_id: 'org_a',
        models: ['gpt-4o'],
        provider: 'openai',
        at: Date.parse(at),
        usage: usage({ input_tokens: 1000 }),
      });
    expect(priced('2026-07-01T23:59:59Z').price.input_usd_per_mtok).toBe(2);
    expect(priced('2026-07-02T00:00:00Z').price.input_usd_per_mtok).toBe(1);
    expect(priced('2026-07-31T23:59:59Z').price.input_usd_per_mtok).toBe(1);
    expect(priced('2026-08-01T00:00:00Z').price.source).toContain('openai/gpt-4o');
  });
});

describe('a given cost', () => {
  it('a given cost is used as it is', () => {
    expect(givenPrice('0.000000000001')).toMatchObject({
      cost_pico_usd: 1n,
      price: { source: 'given', input_usd_per_mtok: null },
    });
    expect(givenPrice(0.0035475000000000003).cost_pico_usd).toBe(3_547_500_000n);
  });
});
