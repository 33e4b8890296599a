// A line of numbers over time, without axes. Its name says the numbers in words.
import type { ReactElement } from 'react';
import styles from './sparkline.module.css';

const WIDTH = 96;
const HEIGHT = 20;

interface SparklineProps {
  values: readonly (number | null)[];
  label: string;
  /** Colour of the line. */
  tone?: 'plain' | 'error';
}

/** The line, filled below; a value that is missing interrupts it. */
export function Sparkline({ values, label, tone = 'plain' }: SparklineProps): ReactElement {
  const { line, area } = pathsOf(values);
  return (
    <svg
      className={styles.spark}
      data-tone={tone}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path className={styles.area} d={area} />
      <path className={styles.line} d={line} />
    </svg>
  );
}

/** Returns the line through the values and the area below it, from 0 up to the largest value. */
export function pathsOf(values: readonly (number | null)[]): { line: string; area: string } {
  const top = Math.max(0, ...values.map((value) => value ?? 0));
  const step = WIDTH / Math.max(1, values.length - 1);
  const y = (value: number): string => (top === 0 ? HEIGHT - 1 : HEIGHT - 1 - (value / top) * (HEIGHT - 3)).toFixed(2);
  let line = '';
  let area = '';
  for (const stretch of stretchesOf(values)) {
    const points = stretch.map(({ at, value }) => `${(at * step).toFixed(2)} ${y(value)}`);
    const [first, last] = [stretch[0], stretch.at(-1)];
    if (first === undefined || last === undefined) continue;
    line += `M${points.join('L')}${points.length === 1 ? 'h0.01' : ''}`;
    area += `M${(first.at * step).toFixed(2)} ${HEIGHT}L${points.join('L')}L${(last.at * step).toFixed(2)} ${HEIGHT}Z`;
  }
  return { line, area };
}

function stretchesOf(values: readonly (number | null)[]): { at: number; value: number }[][] {
  const stretches: { at: number; value: number }[][] = [[]];
  for (const [at, value] of values.entries()) {
    if (value === null) stretches.push([]);
    else stretches.at(-1)?.push({ at, value });
  }
  return stretches;
}
