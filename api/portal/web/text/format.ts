// How the portal writes numbers and times. Pure; the Intl formatters are made once. A value that is
// missing or not a number is "–"; zero is 0. Screens show the short form and give the exact one on
// focus and copy (`exact`).

/** Written in the place of a missing value. */
export const NONE = '–';
/** No-break space between a number and its unit. */
const NBSP = '\u00a0';

const LOCALE = 'en-US';
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 });
const twoDigits = new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const twoSignificant = new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 2 });
const all = new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 15 });

type Maybe = number | null | undefined;
const missing = (value: Maybe): value is null | undefined =>
  value === null || value === undefined || Number.isNaN(value);

/** Returns a whole number with separators: 1,204. */
export function count(value: Maybe): string {
  return missing(value) ? NONE : whole.format(value);
}

/** Returns all digits of a number, for titles and copies. */
export function exact(value: Maybe): string {
  return missing(value) ? NONE : all.format(value);
}

/** Returns a share between 0 and 1 in percent: 0.4 %, 12 %. */
export function percent(share: Maybe): string {
  if (missing(share)) return NONE;
  const value = share * 100;
  return `${(Math.abs(value) < 10 ? oneDigit : whole).format(value)}${NBSP}%`;
}

/** Returns an amount in US dollars: $0.0041, $12.40, $1,204. */
export function money(usd: Maybe): string {
  if (missing(usd)) return NONE;
  const size = Math.abs(usd);
  const sign = usd < 0 ? '-' : '';
  if (size === 0) return '$0';
  if (size >= 1000) return `${sign}$${whole.format(size)}`;
  if (size >= 0.1) return `${sign}$${twoDigits.format(size)}`;
  if (size < 0.000_001) return `${sign}<$0.000001`;
  return `${sign}$${twoSignificant.format(size)}`;
}

/** Returns an amount in US dollars with all its digits. */
export function moneyExact(usd: Maybe): string {
  if (missing(usd)) return NONE;
  return `${usd < 0 ? '-' : ''}$${all.format(Math.abs(usd))}`;
}

/** Returns a count in three digits: 940, 12.4k, 3.1M. */
export function compact(value: Maybe): string {
  if (missing(value)) return NONE;
  const size = Math.abs(value);
  if (size < 1000) return whole.format(value);
  if (size < 999_500) return `${short(value / 1000)}k`;
  if (size < 999_500_000) return `${short(value / 1_000_000)}M`;
  return `${short(value / 1_000_000_000)}B`;
}

const short = (value: number): string => (Math.abs(value) < 99.95 ? oneDigit : whole).format(value);

/** Returns a number of tokens: 12.4k tokens, 1 token. */
export function tokens(value: Maybe): string {
  return missing(value) ? NONE : `${compact(value)}${NBSP}${value === 1 ? 'token' : 'tokens'}`;
}

/** Returns input and output tokens: 41.2k → 3.1k. */
export function tokenFlow(input: Maybe, output: Maybe): string {
  return `${compact(input)} → ${compact(output)}`;
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** Returns a number of bytes: 840 B, 1.2 MB. */
export function bytes(value: Maybe): string {
  if (missing(value)) return NONE;
  let size = value;
  let unit = 0;
  while (size >= 999.5 && unit < BYTE_UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? whole.format(size) : short(size)}${NBSP}${BYTE_UNITS[unit] ?? ''}`;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Returns a duration in milliseconds: 0 ms, 0.4 ms, 840 ms, 2.4 s, 3 m 12 s, 1 h 4 m, 2 d 3 h. */
export function duration(ms: Maybe): string {
  if (missing(ms)) return NONE;
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 9.95) return `${oneDigit.format(ms)}${NBSP}ms`;
  if (ms < 999.5) return `${whole.format(ms)}${NBSP}ms`;
  if (ms < 59_950) return `${oneDigit.format(ms / SECOND)}${NBSP}s`;
  if (ms < HOUR - SECOND / 2) return pair(Math.round(ms / SECOND), 60, 'm', 's');
  if (ms < DAY - MINUTE / 2) return pair(Math.round(ms / MINUTE), 60, 'h', 'm');
  return pair(Math.round(ms / HOUR), 24, 'd', 'h');
}

function pair(total: number, base: number, large: string, small: string): string {
  const rest = total % base;
  const first = `${whole.format(Math.floor(total / base))}${NBSP}${large}`;
  return rest === 0 ? first : `${first} ${rest}${NBSP}${small}`;
}

/** Returns how long ago a moment was, or how long it is until then: 12 s ago, in 3 d. */
export function relativeTime(at: number, now: number): string {
  const distance = Math.abs(now - at);
  if (distance < SECOND) return 'now';
  const text =
    distance < MINUTE
      ? `${Math.floor(distance / SECOND)}${NBSP}s`
      : distance < HOUR
        ? `${Math.floor(distance / MINUTE)}${NBSP}min`
        : distance < DAY
          ? `${Math.floor(distance / HOUR)}${NBSP}h`
          : `${Math.floor(distance / DAY)}${NBSP}d`;
  return at <= now ? `${text} ago` : `in ${text}`;
}
