// Money as whole pico-USD (1e-12 USD) in a bigint, so that sums are exact in any order. In: decimal
// text, or numbers read through their shortest decimal text. Out: pico-USD, and decimal text for
// the store.

/** Decimals of a USD amount in the store. */
const DECIMALS = 12;
const PICO_PER_USD = 1_000_000_000_000;
/** Maximum of a span's cost column: 999,999.999999999999 USD. */
export const COST_PICO_MAX = 999_999_999_999_999_999n;

const DECIMAL = /^(-?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?$/;

/**
 * Returns an amount in USD as pico-USD, exact to 12 decimals, further digits rounded half up. A
 * number is read through its shortest decimal text.
 * @throws RangeError when the text is not a decimal number
 */
export function usdToPico(usd: number | string): bigint {
  return decimalToScaled(typeof usd === 'number' ? String(usd) : usd, DECIMALS);
}

/**
 * Returns a decimal text times 10^decimals as a whole number, rounded half up (away from zero).
 * @throws RangeError when the text is not a decimal number
 */
export function decimalToScaled(text: string, decimals: number): bigint {
  const part = DECIMAL.exec(text);
  const whole = part?.[2] ?? '';
  const fraction = part?.[3] ?? '';
  if (part === null || whole + fraction === '') throw new RangeError(`not a decimal number: ${text.slice(0, 40)}`);
  const digits = whole + fraction;
  /** Number of digits before the point once the number is scaled. */
  const point = whole.length + Number(part[4] ?? '0') + decimals;
  if (point < 0) return 0n;
  const kept = digits.slice(0, point).padEnd(point, '0');
  const roundUp = point < digits.length && digits.charCodeAt(point) >= 0x35;
  const value = BigInt(kept === '' ? '0' : kept) + (roundUp ? 1n : 0n);
  return part[1] === '-' ? -value : value;
}

/** Returns USD with exactly 12 decimals, as a Decimal column takes it. */
export function picoToDecimal(pico: bigint): string {
  if (pico === 0n) return '0.000000000000';
  const negative = pico < 0n;
  const digits = (negative ? -pico : pico).toString().padStart(DECIMALS + 1, '0');
  const text = `${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`;
  return negative ? `-${text}` : text;
}

/** Returns USD as the number in JSON answers: the double nearest to the exact amount. */
export function picoToUsd(pico: bigint): number {
  const safe = pico <= BigInt(Number.MAX_SAFE_INTEGER) && pico >= BigInt(Number.MIN_SAFE_INTEGER);
  return safe ? Number(pico) / PICO_PER_USD : Number(picoToDecimal(pico));
}
