// The dated price table: the price of a model's tokens at an instant, from @pydantic/genai-prices,
// as exact whole numbers. In: a model name, a provider hint, a time. Out: rates in pico-USD per
// million tokens, or null for an unknown model. The package finds the model and its prices; its own
// totals are floating point and not used.
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { calcPrice, findProvider, waitForUpdate } from '@pydantic/genai-prices';
import type { ModelPrice, PriceCalculation } from '@pydantic/genai-prices';
import { decimalToScaled } from './money.ts';

/**
 * A price that may depend on the size of the input: the last tier whose start the input tokens
 * exceed applies to all of them.
 */
export interface Rate {
  /** Pico-USD per million tokens. */
  base: bigint;
  /** Ascending by start. */
  tiers: readonly { start: number; rate: bigint }[];
}

/** The rates of one model at one time; null where the table has none. */
export interface RateCard {
  /** `<provider>/<model>` in the table's names. */
  id: string;
  input: Rate | null;
  output: Rate | null;
  cache_read: Rate | null;
  cache_write: Rate | null;
  cache_write_1h: Rate | null;
  input_audio: Rate | null;
  output_audio: Rate | null;
  /** Pico-USD of a thousand calls. */
  requests_kcount: bigint;
}

const PACKAGE = '@pydantic/genai-prices';
const DAY_MS = 86_400_000;
/** Maximum cached (hint, model, day) entries; names come from senders, so the cache is bounded. */
const CACHE_MAX = 20_000;

/** `genai-prices@<version>`: the table's part of a price source. */
export const TABLE_NAME = `genai-prices@${packageVersion()}`;

function packageVersion(): string {
  const path = findPackageJSON(PACKAGE, import.meta.url);
  const { version } = path === undefined ? {} : (JSON.parse(readFileSync(path, 'utf8')) as { version?: string });
  return version ?? 'unknown';
}

const providers = (await waitForUpdate()) ?? [];

/**
 * Providers by lower-cased model id, for names that only one vendor's catalogue has. The first in
 * the table wins.
 */
const providerByExactId = new Map<string, string>();
for (const provider of providers) {
  for (const model of provider.models) {
    const id = model.id.toLowerCase();
    if (!providerByExactId.has(id)) providerByExactId.set(id, provider.id);
  }
}

type Cached = { card: RateCard | null } | { byInstant: true };
const cache = new Map<string, Cached>();

/**
 * Returns the rates of a model at an instant.
 * @param hint provider to look up first, in the names of the table or of OpenTelemetry
 * @returns null when the table does not know the model
 */
export function rateCard(model: string, hint: string | null, atMs: number): RateCard | null {
  const key = `${Math.floor(atMs / DAY_MS)} ${hint ?? ''} ${model}`;
  const known = cache.get(key);
  if (known !== undefined && 'card' in known) return known.card;
  const found = lookUp(model, hint, new Date(atMs));
  const card = found === null ? null : toCard(found);
  if (known !== undefined) return card;
  if (cache.size >= CACHE_MAX) cache.clear();
  cache.set(key, found !== null && changesWithinADay(found) ? { byInstant: true } : { card });
  return card;
}

/** Some vendors charge by the time of day; such a price is looked up for each call. */
function changesWithinADay({ model }: PriceCalculation): boolean {
  return (
    Array.isArray(model.prices) &&
    model.prices.some(({ constraint }) => constraint !== undefined && 'start_time' in constraint)
  );
}

/**
 * Looks up the hinted provider, then providers whose models have such names, then a provider before
 * / or :, then an exact catalogue name.
 */
function lookUp(model: string, hint: string | null, timestamp: Date): PriceCalculation | null {
  const hinted = hint === null ? null : calculate(model, hint, timestamp);
  if (hinted !== null) return hinted;
  const matched = calculate(model, null, timestamp);
  if (matched !== null) return matched;
  const separator = /[/:]/.exec(model)?.index ?? -1;
  if (separator > 0) {
    const [prefix, rest] = [model.slice(0, separator), model.slice(separator + 1)];
    const provider = findProvider({ providerId: prefix });
    const prefixed = provider === undefined || rest === '' ? null : calculate(rest, provider.id, timestamp);
    if (prefixed !== null) return prefixed;
  }
  const owner = providerByExactId.get(model.toLowerCase().trim());
  if (owner !== undefined) return calculate(model, owner, timestamp);
  return /^([a-z]+\.)?(anthropic|amazon|meta|mistral|cohere|deepseek|openai)\./.test(model)
    ? calculate(model, 'aws', timestamp)
    : null;
}

function calculate(model: string, providerId: string | null, timestamp: Date): PriceCalculation | null {
  return calcPrice({}, model, providerId === null ? { timestamp } : { providerId, timestamp });
}

function toCard({ provider, model, model_price: price }: PriceCalculation): RateCard {
  return {
    id: `${provider.id}/${model.id}`,
    input: toRate(price['input_mtok']),
    output: toRate(price['output_mtok']),
    cache_read: toRate(price['cache_read_mtok']),
    cache_write: toRate(price['cache_write_mtok']),
    cache_write_1h: toRate(price['cache_write_1h_mtok']),
    input_audio: toRate(price['input_audio_mtok']),
    output_audio: toRate(price['output_audio_mtok']),
    requests_kcount: toRate(price['requests_kcount'])?.base ?? 0n,
  };
}

function toRate(price: ModelPrice[string]): Rate | null {
  if (price === undefined) return null;
  if (typeof price === 'number') return { base: scaled(price), tiers: [] };
  const tiers = price.tiers.map((tier) => ({ start: tier.start, rate: scaled(tier.price) }));
  return { base: scaled(price.base), tiers: tiers.sort((a, b) => a.start - b.start) };
}

/** The table is written in decimal; a number's shortest text restores that decimal. */
function scaled(usdPerMtok: number): bigint {
  return decimalToScaled(String(usdPerMtok), 12);
}
