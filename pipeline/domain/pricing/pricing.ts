// The cost of a model call: as the sender states it, by the organization's own prices, or by the
// dated table, in this order. In: model, token counts, the call's time. Out: exact pico-USD and the
// price that was used. Exact means equal to decimal arithmetic on the published prices, rounded
// once, half up, to a pico-USD.
import { COST_PICO_MAX, decimalToScaled, usdToPico } from './money.ts';
import { rateCard, TABLE_NAME, type Rate, type RateCard } from './price_table.ts';
import type { SpanPrice } from '../traces/span.ts';

/**
 * An organization's own price, USD per million tokens. Of several for a model that have not ended by
 * the call (`until`, UTC date), the latest `from` not after the call applies.
 */
export interface OrgPrice {
  model: string;
  input_usd_per_mtok: number;
  output_usd_per_mtok: number;
  cached_input_usd_per_mtok?: number | undefined;
  /** ISO date; absent for a price without a beginning. */
  from?: string | undefined;
  /** ISO date of the first day without the price; absent for a price without an end. */
  until?: string | undefined;
}

/**
 * Returns the organization's current prices. Compiled prices are cached by identity: a changed list
 * must be a new array.
 */
export type OrgPrices = (orgId: string) => readonly OrgPrice[];

/** Token counts of a call. Parts are included in their totals, not added to them. */
export interface PricedUsage {
  /** All input tokens: uncached, read from a cache and written to one. */
  input_tokens: number;
  output_tokens: number;
  /** Input tokens read from a cache. */
  cached_input_tokens: number;
  /** Input tokens written to a cache, at the standard and at the one-hour rate. */
  cache_write_tokens: number;
  cache_write_1h_tokens: number;
  input_audio_tokens: number;
  output_audio_tokens: number;
}

interface PricedCall {
  org_id: string;
  /** Names to look up, best first: as requested, then as answered. */
  models: readonly string[];
  /**
   * Provider to look up first (`openai`, `anthropic`, an OpenTelemetry gen_ai.provider.name), or
   * null.
   */
  provider: string | null;
  /** Start of the call, milliseconds. */
  at: number;
  usage: PricedUsage;
}

export interface Priced {
  cost_pico_usd: bigint;
  /** The source is `missing` when no price is known; the cost is then 0. */
  price: SpanPrice;
}

export interface PriceBook {
  price(call: PricedCall): Priced;
}

const NO_PRICE: Omit<SpanPrice, 'source'> = {
  input_usd_per_mtok: null,
  output_usd_per_mtok: null,
  cached_input_usd_per_mtok: null,
};
const TOKENS_PER_MTOK = 1_000_000n;
const CALLS_PER_KCOUNT = 1000n;

/** The price of spans that are not model calls: none, at no cost. */
export const UNPRICED: Priced = Object.freeze({ cost_pico_usd: 0n, price: Object.freeze({ source: '', ...NO_PRICE }) });
const MISSING: Priced = Object.freeze({ cost_pico_usd: 0n, price: Object.freeze({ source: 'missing', ...NO_PRICE }) });

/**
 * Returns the cost that the sender states (attributes.cost_usd): a number of USD or its decimal
 * text, not negative.
 */
export function givenPrice(costUsd: number | string): Priced {
  return { cost_pico_usd: capped(usdToPico(costUsd)), price: { source: 'given', ...NO_PRICE } };
}

export function createPriceBook(orgPrices: OrgPrices): PriceBook {
  const byList = new WeakMap<readonly OrgPrice[], Map<string, OrgPrice[]>>();

  function orgCard(orgId: string, model: string, at: number): RateCard | null {
    const list = orgPrices(orgId);
    if (list.length === 0) return null;
    let byModel = byList.get(list);
    if (byModel === undefined) {
      byModel = Map.groupBy(list, (price) => price.model.toLowerCase());
      byList.set(list, byModel);
    }
    const inForce = latest(byModel.get(model.toLowerCase()) ?? [], at);
    return inForce === null ? null : orgRates(inForce);
  }

  return {
    price(call) {
      for (const model of call.models) {
        const card = orgCard(call.org_id, model, call.at);
        if (card !== null) return priceBy(card, call.usage, 'org');
      }
      for (const model of call.models) {
        const card = rateCard(model, call.provider, call.at);
        if (card !== null) return priceBy(card, call.usage, `${TABLE_NAME}:${card.id}`);
      }
      return MISSING;
    },
  };
}

/**
 * Returns the price that applies at an instant: of those that have not ended the latest `from` not
 * after it; of equal ones the last in the list.
 */
function latest(prices: readonly OrgPrice[], at: number): OrgPrice | null {
  let best: OrgPrice | null = null;
  let bestFrom = -Infinity;
  for (const price of prices) {
    const from = price.from === undefined ? -Infinity : Date.parse(price.from);
    const until = price.until === undefined ? Infinity : Date.parse(price.until);
    if (from <= at && at < until && from >= bestFrom) [best, bestFrom] = [price, from];
  }
  return best;
}

function orgRates(price: OrgPrice): RateCard {
  const cached = price.cached_input_usd_per_mtok;
  return {
    id: price.model,
    input: flat(price.input_usd_per_mtok),
    output: flat(price.output_usd_per_mtok),
    cache_read: cached === undefined ? null : flat(cached),
    cache_write: null,
    cache_write_1h: null,
    input_audio: null,
    output_audio: null,
    requests_kcount: 0n,
  };
}

function flat(usdPerMtok: number): Rate {
  return { base: decimalToScaled(String(usdPerMtok), 12), tiers: [] };
}

/**
 * Returns the counts with every part capped by its total: tokens that a sender reports as cached,
 * written or spoken beyond the call's tokens do not exist and cost nothing.
 */
function boundedUsage(usage: PricedUsage): PricedUsage {
  const { input_tokens, output_tokens } = usage;
  const cached_input_tokens = Math.min(usage.cached_input_tokens, input_tokens);
  const cache_write_tokens = Math.min(usage.cache_write_tokens, input_tokens - cached_input_tokens);
  const notRead = input_tokens - cached_input_tokens - cache_write_tokens;
  const cache_write_1h_tokens = Math.min(usage.cache_write_1h_tokens, notRead);
  return {
    input_tokens,
    output_tokens,
    cached_input_tokens,
    cache_write_tokens,
    cache_write_1h_tokens,
    input_audio_tokens: Math.min(usage.input_audio_tokens, notRead - cache_write_1h_tokens),
    output_audio_tokens: Math.min(usage.output_audio_tokens, output_tokens),
  };
}

/** A kind of token without a price of its own costs as much as the kind that contains it. */
function priceBy(card: RateCard, reported: PricedUsage, source: string): Priced {
  const usage = boundedUsage(reported);
  const size = usage.input_tokens;
  const input = rateAt(card.input, size);
  const output = rateAt(card.output, size);
  const cacheRead = rateAt(card.cache_read, size) ?? input;
  const cacheWrite = rateAt(card.cache_write, size) ?? input;
  const plainInput =
    size -
    usage.cached_input_tokens -
    usage.cache_write_tokens -
    usage.cache_write_1h_tokens -
    usage.input_audio_tokens;
  const parts = [
    part(plainInput, input),
    part(usage.cached_input_tokens, cacheRead),
    part(usage.cache_write_tokens, cacheWrite),
    part(usage.cache_write_1h_tokens, rateAt(card.cache_write_1h, size) ?? cacheWrite),
    part(usage.input_audio_tokens, rateAt(card.input_audio, size) ?? input),
    part(usage.output_tokens - usage.output_audio_tokens, output),
    part(usage.output_audio_tokens, rateAt(card.output_audio, size) ?? output),
  ];
  const perMtok = parts.reduce((sum, one) => sum + one, (card.requests_kcount * TOKENS_PER_MTOK) / CALLS_PER_KCOUNT);
  return {
    cost_pico_usd: capped((perMtok + TOKENS_PER_MTOK / 2n) / TOKENS_PER_MTOK),
    price: {
      source,
      input_usd_per_mtok: usd(input),
      output_usd_per_mtok: usd(output),
      cached_input_usd_per_mtok: usage.cached_input_tokens > 0 ? usd(cacheRead) : null,
    },
  };
}

function rateAt(rate: Rate | null, inputTokens: number): bigint | null {
  if (rate === null) return null;
  let now = rate.base;
  for (const tier of rate.tiers) if (inputTokens > tier.start) now = tier.rate;
  return now;
}

function part(tokens: number, rate: bigint | null): bigint {
  return tokens <= 0 || rate === null ? 0n : BigInt(tokens) * rate;
}

function usd(rate: bigint | null): number | null {
  return rate === null ? null : Number(rate) / 1e12;
}

function capped(pico: bigint): bigint {
  return pico > COST_PICO_MAX ? COST_PICO_MAX : pico;
}
