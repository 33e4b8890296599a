// The difference of two means in words. Pure.
import { count, exact } from '../../text/format.ts';

interface Difference {
  pairs: number;
  mean: number;
  half_width: number | null;
  is_beyond_chance: boolean;
}

/** Returns a number with two decimals, or with two significant digits where it is smaller. */
const rounded = (value: number): string =>
  exact(Number(Math.abs(value) < 0.01 ? value.toPrecision(2) : value.toFixed(2)));

/** Returns the difference with its interval and what it means: "−0.08 ± 0.05: worse". */
export function differenceWords(difference: Difference | null): string {
  if (difference === null) return 'No item has a score in both evals.';
  const { pairs, mean, half_width, is_beyond_chance } = difference;
  const sign = mean > 0 ? '+' : mean < 0 ? '−' : '';
  const number = `${sign}${rounded(Math.abs(mean))}${half_width === null ? '' : ` ± ${rounded(half_width)}`}`;
  const items = `${count(pairs)} ${pairs === 1 ? 'item' : 'items'}`;
  if (half_width === null) return `${number}: one item says nothing about the difference.`;
  if (!is_beyond_chance) return `${number}: within chance (95 % interval, ${items} with both scores).`;
  return `${number}: ${mean > 0 ? 'better' : 'worse'}, beyond chance (95 % interval, ${items} with both scores).`;
}
