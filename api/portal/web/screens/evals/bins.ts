// The distribution of scores: a bar for each value where there are few, else ten of equal width. Pure.
import { exact } from '../../text/format.ts';

const VALUES_MAX = 12;
const BINS = 10;

/** Returns the name and the number of scores of each bar. */
export function binsOf(scores: readonly number[]): { points: string[]; values: number[] } {
  const counts = new Map<number, number>();
  for (const score of scores) counts.set(score, (counts.get(score) ?? 0) + 1);
  const distinct = [...counts.keys()].sort((a, b) => a - b);
  if (distinct.length <= VALUES_MAX)
    return { points: distinct.map((score) => exact(score)), values: distinct.map((score) => counts.get(score) ?? 0) };
  const [low = 0, high = low] = [distinct[0], distinct.at(-1)];
  const width = (high - low) / BINS;
  const values = new Array<number>(BINS).fill(0);
  for (const [score, count] of counts) {
    const bin = Math.min(BINS - 1, Math.floor((score - low) / width));
    values[bin] = (values[bin] ?? 0) + count;
  }
  const edge = (at: number): string => exact(Math.round((low + at * width) * 100) / 100);
  return { points: values.map((_, at) => `${edge(at)} to ${edge(at + 1)}`), values };
}
