// Content of a chart over evenly spaced points (days, hours, versions), and its geometry: sums of the
// stack, the height of the scale, labels of the axis, and the point and part under the pointer. Pure.
import type { ColourToken } from './colours.ts';

export interface ChartSeries {
  id: string;
  label: string;
  /** One value for each point; null where there is none. */
  values: readonly (number | null)[];
  colour: ColourToken;
  /** Bars and areas are stacked in their order, from the baseline up; a line stands by itself. */
  form: 'bar' | 'area' | 'line';
  dashed?: boolean;
}

/** A stretch of values around a line, such as an interval of a forecast. */
export interface ChartBand {
  label: string;
  low: readonly (number | null)[];
  high: readonly (number | null)[];
  colour: ColourToken;
}

/** A point that a triangle marks. */
export interface ChartMark {
  at: number;
  /** Name of all marks of this kind: Anomaly. */
  kind: string;
  /** The mark in words. */
  label: string;
  colour: ColourToken;
}

/** A horizontal line, such as a limit. */
export interface ChartLimit {
  value: number;
  label: string;
  colour: ColourToken;
}

export interface ChartContent {
  /** Names of the points, for the table and the text below the chart: 2026-11-23. */
  points: readonly string[];
  /** Short names of the points for the axis; the names unless given. */
  ticks?: readonly string[];
  series: readonly ChartSeries[];
  bands?: readonly ChartBand[];
  marks?: readonly ChartMark[];
  limits?: readonly ChartLimit[];
  /** Upper end of the scale where it does not depend on the values, such as 1 for shares. */
  top?: number;
}

/** Where the points lie within the element of the chart, in CSS pixels. */
export interface Geometry {
  left: number;
  top: number;
  width: number;
  height: number;
  /** Value at the upper edge. */
  max: number;
}

export const isStacked = ({ form }: ChartSeries): boolean => form !== 'line';

/** Returns the lower and upper end of each value of the stacked series, in their order. */
export function stackOf(
  series: readonly ChartSeries[],
  points: number,
): { id: string; low: number[]; high: number[] }[] {
  const base = new Array<number>(points).fill(0);
  return series.filter(isStacked).map(({ id, values }) => {
    const low = base.slice();
    for (let at = 0; at < points; at++) base[at] = (base[at] ?? 0) + Math.max(0, values[at] ?? 0);
    return { id, low, high: base.slice() };
  });
}

/** Returns the largest value of everything that the chart shows; 0 where it shows nothing. */
export function largestOf({ points, series, bands = [], limits = [], top }: ChartContent): number {
  if (top !== undefined) return top;
  const stacks = stackOf(series, points.length).at(-1)?.high ?? [];
  const lines = series.filter((one) => !isStacked(one)).flatMap(({ values }) => values);
  const all = [...stacks, ...lines, ...bands.flatMap(({ high }) => high), ...limits.map(({ value }) => value)];
  return all.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

/** Returns the sum of the stacked series at a point; null where nothing is stacked. */
export function totalAt(series: readonly ChartSeries[], at: number): number | null {
  const stacked = series.filter(isStacked);
  return stacked.length === 0 ? null : stacked.reduce((sum, { values }) => sum + (values[at] ?? 0), 0);
}

/** Returns the points that the axis names: evenly spaced, as many as fit. */
export function tickPoints(points: number, width: number, label_px: number): number[] {
  const fit = Math.max(1, Math.floor(width / Math.max(1, label_px)));
  const step = Math.max(1, Math.ceil(points / fit));
  return Array.from({ length: Math.ceil(points / step) }, (_, index) => index * step);
}

/** Returns the point at a horizontal position; −1 outside of the chart or without points. */
export function pointAt({ left, width }: Geometry, x: number, points: number): number {
  if (points === 0 || width <= 0) return -1;
  const share = (x - left) / width;
  return share < 0 || share >= 1 ? -1 : Math.floor(share * points);
}

/** Returns the id of the stacked series at a vertical position over a point; null where there is none. */
export function partAt(
  { top, height, max }: Geometry,
  y: number,
  { points, series }: Pick<ChartContent, 'points' | 'series'>,
  at: number,
): string | null {
  if (height <= 0) return null;
  const value = (1 - (y - top) / height) * max;
  const part = stackOf(series, points.length).find(
    ({ low, high }) => value >= (low[at] ?? 0) && value < (high[at] ?? 0),
  );
  return part?.id ?? null;
}

/** Returns the stretch after a key, or null for a key that does not move it. Shift keeps its other end. */
export function stretchAfter(
  { key, shiftKey }: { key: string; shiftKey: boolean },
  stretch: Stretch | null,
  points: number,
): Stretch | null {
  if (points === 0) return null;
  const moved = (to: number): Stretch => ({ from: shiftKey && stretch !== null ? stretch.from : to, to });
  if (key === 'Home') return moved(0);
  if (key === 'End') return moved(points - 1);
  const step = key === 'ArrowLeft' ? -1 : key === 'ArrowRight' ? 1 : 0;
  if (step === 0) return null;
  if (stretch === null) return { from: points - 1, to: points - 1 };
  return moved(Math.min(points - 1, Math.max(0, stretch.to + step)));
}

/** Points between two ends, both included; `to` is the end that moves. */
export interface Stretch {
  from: number;
  to: number;
}

/** Returns the ends of a stretch in their order. */
export const orderedEnds = ({ from, to }: Stretch): [first: number, last: number] =>
  from < to ? [from, to] : [to, from];
