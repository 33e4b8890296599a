// The time axis of the waterfall. Folded idle time is drawn as a short break, so that an hour of
// waiting does not squeeze the seconds of work. Times are milliseconds from the start of the trace;
// units are milliseconds of the axis after folding. A view is the part of the axis in sight.
import type { Gaps } from './idle.ts';

export interface Axis {
  /** Ends of the pieces in time, and their positions in units. The map between two of them is linear. */
  time: Float64Array;
  unit: Float64Array;
  breaks: readonly Break[];
  length: number;
}

export interface Break {
  from: number;
  to: number;
  fromUnit: number;
  toUnit: number;
}

export interface View {
  from: number;
  to: number;
}

/** Share of the folded axis that one break takes. */
const BREAK_SHARE = 0.03;
/** The closest zoom shows this part of the axis, and never less than VIEW_MIN_UNITS. */
const ZOOM_MAX = 100_000;
const VIEW_MIN_UNITS = 0.5;
/** Traces without a duration get an axis of one millisecond, so that no division is by zero. */
const LENGTH_MIN = 1;

export function makeAxis(from: number, to: number, folded: Gaps): Axis {
  const end = Math.max(to, from + LENGTH_MIN);
  const count = folded.from.length;
  let idle = 0;
  for (let g = 0; g < count; g += 1) idle += (folded.to[g] ?? 0) - (folded.from[g] ?? 0);
  const busy = Math.max(end - from - idle, LENGTH_MIN);
  const width = (busy * BREAK_SHARE) / Math.max(1 - BREAK_SHARE * count, BREAK_SHARE);
  const time = [from];
  const unit = [0];
  const breaks: Break[] = [];
  let last = from;
  let at = 0;
  const add = (until: number, length: number): void => {
    if (until <= last) return;
    at += length;
    last = until;
    time.push(until);
    unit.push(at);
  };
  for (let g = 0; g < count; g += 1) {
    const low = folded.from[g] ?? 0;
    const high = folded.to[g] ?? 0;
    add(low, low - last);
    const fromUnit = at;
    add(high, Math.min(width, high - low));
    breaks.push({ from: low, to: high, fromUnit, toUnit: at });
  }
  add(end, end - last);
  return { time: Float64Array.from(time), unit: Float64Array.from(unit), breaks, length: at };
}

/** Maps a value between two monotone columns; values outside map to the ends. */
function mapBetween(source: Float64Array, target: Float64Array, value: number): number {
  let low = 0;
  let high = source.length - 1;
  if (value <= (source[0] ?? 0)) return target[0] ?? 0;
  if (value >= (source[high] ?? 0)) return target[high] ?? 0;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((source[middle] ?? 0) <= value) low = middle;
    else high = middle;
  }
  const from = source[low] ?? 0;
  const share = (value - from) / Math.max((source[high] ?? 0) - from, Number.MIN_VALUE);
  return (target[low] ?? 0) + share * ((target[high] ?? 0) - (target[low] ?? 0));
}

export const unitAt = (axis: Axis, time: number): number => mapBetween(axis.time, axis.unit, time);
export const timeAt = (axis: Axis, unit: number): number => mapBetween(axis.unit, axis.time, unit);

export const wholeView = (axis: Axis): View => ({ from: 0, to: axis.length });
export const isWhole = (axis: Axis, view: View): boolean => view.from <= 0 && view.to >= axis.length;

/** Returns the view of a length that is as close to a start as the axis allows. */
function viewOf(axis: Axis, from: number, length: number): View {
  const least = Math.min(axis.length, Math.max(axis.length / ZOOM_MAX, VIEW_MIN_UNITS));
  const shown = Math.min(axis.length, Math.max(length, least));
  const start = Math.min(Math.max(0, from), axis.length - shown);
  return { from: start, to: start + shown };
}

/** Zooms by a factor (2 shows half as much), leaving the unit at an anchor (0 left to 1 right) where it is. */
export function zoomAt(axis: Axis, view: View, factor: number, anchor: number): View {
  const length = view.to - view.from;
  const pivot = view.from + length * anchor;
  const next = viewOf(axis, 0, length / factor);
  return viewOf(axis, pivot - (next.to - next.from) * anchor, next.to - next.from);
}

/** Moves the view by a share of its length. */
export function panBy(axis: Axis, view: View, share: number): View {
  const length = view.to - view.from;
  return viewOf(axis, view.from + length * share, length);
}

/** Share of the view left free on either side of what it is fitted to. */
const FIT_MARGIN = 0.08;

/** Returns the view that fits a stretch of time. */
export function fitTime(axis: Axis, from: number, to: number): View {
  const low = unitAt(axis, from);
  const length = unitAt(axis, to) - low;
  const next = viewOf(axis, 0, length * (1 + 2 * FIT_MARGIN));
  return viewOf(axis, low + length / 2 - (next.to - next.from) / 2, next.to - next.from);
}

/** Returns the view between two units in either order, such as the ends of a brush. */
export const viewBetween = (axis: Axis, a: number, b: number): View => {
  const low = Math.min(a, b);
  return viewOf(axis, low, Math.max(a, b) - low);
};

/** Returns where a time stands in a view: 0 at its left end, 1 at its right. */
export const shareOf = (axis: Axis, view: View, time: number): number =>
  (unitAt(axis, time) - view.from) / (view.to - view.from);

const STEPS = [1, 2, 5];

/** Returns at most `count` round times in the view, outside of its breaks. */
export function ticksOf(axis: Axis, view: View, count: number): number[] {
  const rough = (view.to - view.from) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-3)));
  const step = power * (STEPS.find((factor) => factor * power >= rough) ?? 10);
  // Adding 0 turns a negative zero into zero.
  const first = Math.ceil(timeAt(axis, view.from) / step - 1e-9) + 0;
  const ticks: number[] = [];
  let unit = -Infinity;
  // Breaks hold many steps of time and few units, so the loop jumps over them.
  for (let n = first; ticks.length <= count; n += 1) {
    const inBreak = axis.breaks.find(({ from, to }) => n * step > from && n * step < to);
    if (inBreak !== undefined) n = Math.ceil(inBreak.to / step - 1e-9);
    const at = unitAt(axis, n * step);
    if (at > view.to || at <= unit) break;
    ticks.push(n * step);
    unit = at;
  }
  return ticks;
}
