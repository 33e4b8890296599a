// The organization's own prices as a list by model and day, and what a price makes of calls. Pure.
import { NONE } from '../../text/format.ts';
import type { components } from '../../client/contract.d.ts';

export type Price = components['schemas']['Prices']['prices'][number];

/** Calls of a model without a price. */
export interface Unpriced {
  model: string;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  last_call_at: string;
}

/** Identifies a price: the API accepts one for each model and first day. */
export const priceId = ({ model, from }: Pick<Price, 'model' | 'from'>): string =>
  JSON.stringify([model.toLowerCase(), from ?? null]);

/** Returns the prices by model, the newest of each first. */
export const sortedPrices = (prices: readonly Price[]): Price[] =>
  prices.toSorted(
    (a, b) => compare(a.model.toLowerCase(), b.model.toLowerCase()) || compare(b.from ?? '', a.from ?? ''),
  );

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export type PriceState = 'now' | 'later' | 'ended' | 'replaced';

/**
 * Returns whether calls of a day take a price.
 * @param day ISO date
 */
export function stateOf(price: Price, prices: readonly Price[], day: string): PriceState {
  if ((price.from ?? '') > day) return 'later';
  if (price.until !== undefined && price.until <= day) return 'ended';
  const isReplaced = prices.some(
    (other) =>
      other.model.toLowerCase() === price.model.toLowerCase() &&
      (other.from ?? '') > (price.from ?? '') &&
      (other.from ?? '') <= day &&
      (other.until === undefined || other.until > day),
  );
  return isReplaced ? 'replaced' : 'now';
}

/**
 * Returns the list with one price changed; null if the former price is no longer in the list.
 * @param former the price to replace; null adds one
 * @param next null removes the former one
 */
export function withPrice(prices: readonly Price[], former: Price | null, next: Price | null): Price[] | null {
  if (former !== null && !prices.some((one) => priceId(one) === priceId(former))) return null;
  const others = former === null ? [...prices] : prices.filter((one) => priceId(one) !== priceId(former));
  return next === null ? others : [...others, next];
}

const PRICE = /^\d{1,7}(?:\.\d{1,12})?$/;
const USD_MAX = 1_000_000;

/** Reads an amount in USD as people type it; null for an empty field, undefined for no amount. */
export function parseUsd(text: string): number | null | undefined {
  const plain = text.trim().replace(/^\$\s?/, '');
  if (plain === '') return null;
  const value = PRICE.test(plain) ? Number(plain) : Number.NaN;
  return value <= USD_MAX ? value : undefined;
}

const perMtok = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 12 });

/** Returns a price with all its digits and at least the cents: $2.00, $0.0375. */
export const priceWords = (usd: number | null | undefined): string =>
  usd === null || usd === undefined ? NONE : `$${perMtok.format(usd)}`;

const MTOK = 1_000_000;

/** Returns what tokens cost at a price, in USD. No token counts as cached. */
export const costAt = (
  { input_tokens, output_tokens }: Pick<Unpriced, 'input_tokens' | 'output_tokens'>,
  { input_usd_per_mtok, output_usd_per_mtok }: Pick<Price, 'input_usd_per_mtok' | 'output_usd_per_mtok'>,
): number => (input_tokens * input_usd_per_mtok + output_tokens * output_usd_per_mtok) / MTOK;
