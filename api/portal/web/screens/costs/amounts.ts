// How limits, periods and days of budgets are written and read. Pure. Days and periods are UTC.
import { bytes, compact, duration, exact, money, moneyExact, NONE } from '../../text/format.ts';

/** The resources of a budget that the portal can limit. */
export const RESOURCES = ['tokens', 'storage_mb', 'sandbox_seconds', 'cost_usd'] as const;
export type Resource = (typeof RESOURCES)[number];

const NBSP = '\u00a0';
const BYTES_PER_MB = 1_000_000;
const SECOND_MS = 1000;
const DAY_MS = 86_400_000;

interface ResourceWords {
  name: string;
  /** Unit of a limit as the API takes it. */
  unit: string;
  /** Returns an amount in three digits. */
  short: (amount: number) => string;
}

export const WORDS: Readonly<Record<Resource, ResourceWords>> = {
  tokens: { name: 'Tokens', unit: 'tokens', short: compact },
  storage_mb: { name: 'Storage', unit: 'MB', short: (mb) => bytes(mb * BYTES_PER_MB) },
  sandbox_seconds: {
    name: 'Sandbox time',
    unit: 's',
    short: (seconds) => (seconds === 0 ? `0${NBSP}s` : duration(seconds * SECOND_MS)),
  },
  cost_usd: { name: 'Cost', unit: 'USD', short: money },
};

/** Returns an amount with all its digits and its unit: 1,204,331 tokens, $12.5. */
export const exactAmount = (resource: Resource, amount: number): string =>
  resource === 'cost_usd' ? moneyExact(amount) : `${exact(amount)}${NBSP}${WORDS[resource].unit}`;

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, b: 1e9 };
const TYPED = /^(\d{1,16}(?:\.\d{1,9})?)([kmb]?)$/;

const DOLLARS = /^\$?(\d{1,10}(?:\.\d{1,12})?)$/;

/** Reads a limit of a resource as people type it; see parseLimit. A limit on cost may have decimals: 12.50, $1,000. */
export function parseLimitOf(resource: Resource, text: string): number | null | undefined {
  if (resource !== 'cost_usd') return parseLimit(text);
  const plain = text.replaceAll(/[,_\s]/g, '');
  if (plain === '') return null;
  const [, digits = ''] = DOLLARS.exec(plain) ?? [];
  return digits === '' ? undefined : Number(digits);
}

/**
 * Reads a limit as people type it: 10000000, 10,000,000, 10 M, 1.5k.
 * @returns null for an empty field, which means no limit; undefined for a text that is no whole number
 */
export function parseLimit(text: string): number | null | undefined {
  const plain = text.replaceAll(/[,_\s]/g, '').toLowerCase();
  if (plain === '') return null;
  const [, digits = '', suffix = ''] = TYPED.exec(plain) ?? [];
  if (digits === '') return undefined;
  const value = Number(digits) * (FACTORS[suffix] ?? 1);
  // A product such as 1.1 * 1000 may miss the whole number by the rounding of binary fractions.
  const whole = Math.round(value);
  return Number.isSafeInteger(whole) && Math.abs(value - whole) < 1e-6 ? whole : undefined;
}

const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' });
const dayAndYear = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
const month = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });

/** Returns a day: 14 October. */
export const dayWords = (at: string | number): string => day.format(typeof at === 'string' ? Date.parse(at) : at);

/** Returns the name of a period: October 2026, or its first and last day where it is no month. */
export function periodWords(period_start: string, period_end: string): string {
  const [start, end] = [Date.parse(period_start), Date.parse(period_end)];
  if (end - start < 32 * DAY_MS) return month.format(start);
  return `${dayAndYear.format(start)} to ${dayAndYear.format(end - DAY_MS)}`;
}

export interface Rate {
  /** Use at the end of the period at the average rate so far. */
  projected: number;
  /** Moment at which use reaches the limit at that rate, within the period; null if it does not. */
  reached_at: number | null;
}

/**
 * Returns where the average rate so far leads. The rate is taken over at least one day, as the
 * alerts of the service take it.
 */
export function rateOf(
  { used, limit }: { used: number; limit: number | null },
  { start, end, now }: { start: number; end: number; now: number },
): Rate {
  const perMs = used / Math.max(DAY_MS, now - start);
  const projected = perMs * (end - start);
  const at = limit === null || used >= limit || perMs === 0 ? null : now + (limit - used) / perMs;
  return { projected: Math.max(used, projected), reached_at: at !== null && at < end ? at : null };
}

/** Returns a share of a whole in percent, or a dash where there is no whole. */
export const shareWords = (part: number, whole: number): string =>
  whole === 0 ? NONE : `${compact(Math.round((part / whole) * 100))}${NBSP}%`;
