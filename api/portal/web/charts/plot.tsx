// Draws a chart on a canvas. uplot computes scales and axes and draws lines and bands; stacks, marks
// and limits are drawn here, so that a part of a stack can be highlighted by itself. Colours are those
// of the style sheet at the time of drawing. The chunk with uplot loads when a chart is shown.
import { type ReactElement, useEffect, useEffectEvent, useRef, useSyncExternalStore } from 'react';
import UPlot from 'uplot';
import { usePreferences } from '../shell/preferences.ts';
import { type ChartContent, type Geometry, isStacked, largestOf, stackOf, tickPoints } from './chart_shape.ts';
import type { ColourToken } from './colours.ts';
import './plot.css';

interface PlotProps {
  content: ChartContent;
  height: number;
  /** Writes a value of the vertical axis. */
  format: (value: number) => string;
  /** The series that stands out; null for all alike. */
  highlight: string | null;
  onGeometry: (geometry: Geometry) => void;
}

const FONT = "11px 'Inter Variable', system-ui, sans-serif";
const TICK_PX = 64;
const AXIS_X_PX = 22;
const AXIS_GAP_PX = 6;
/** Width of a character of an axis label. */
const CHARACTER_PX = 6.5;
/** Share of a point's width that its bar takes. */
const BAR_SHARE = 0.8;
const FADED = 0.2;
/** Distances of the lines of the value axis: values of two digits say them exactly. */
const STEPS = Array.from({ length: 31 }, (_, at) => [1, 2, 5].map((digit) => Number(`${digit}e${at - 12}`))).flat();
const WHOLE_STEPS = STEPS.filter((step) => step >= 1);
const BAND_ALPHA = 0.18;
const MARK_PX = 5;

/** The canvas, as wide as its place. */
export default function Plot({ content, height, format, highlight, onGeometry }: PlotProps): ReactElement {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const shown = useRef(highlight);
  const report = useEffectEvent(onGeometry);
  const scheme = useColourScheme();
  useEffect(() => {
    const host = place.current;
    if (host === null) return undefined;
    const made = new UPlot(optionsOf({ content, format, host, height, shown }), dataOf(content), host);
    plot.current = made;
    report(geometryOf(made));
    const observer = new ResizeObserver(() => {
      if (host.clientWidth === made.width) return;
      made.setSize({ width: host.clientWidth, height });
      report(geometryOf(made));
    });
    observer.observe(host);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [content, format, height, scheme]);
  useEffect(() => {
    if (shown.current === highlight) return;
    shown.current = highlight;
    plot.current?.redraw(false, false);
  }, [highlight]);
  return <div ref={place} style={{ height }} />;
}

/** Returns a text that changes whenever the colours do. */
function useColourScheme(): string {
  const { theme } = usePreferences();
  const dark = useSyncExternalStore(
    (listener) => {
      const media = matchMedia('(prefers-color-scheme: dark)');
      media.addEventListener('change', listener);
      return () => {
        media.removeEventListener('change', listener);
      };
    },
    () => matchMedia('(prefers-color-scheme: dark)').matches,
  );
  return `${theme} ${dark}`;
}

/** Bands first, so that lines lie over them: each is two series without strokes. */
function dataOf({ points, series, bands = [] }: ChartContent): UPlot.AlignedData {
  const x = points.map((_, at) => at);
  const lines = series.filter((one) => !isStacked(one));
  return [x, ...bands.flatMap(({ high, low }) => [[...high], [...low]]), ...lines.map(({ values }) => [...values])];
}

interface Drawing {
  content: ChartContent;
  format: (value: number) => string;
  host: HTMLElement;
  height: number;
  shown: { readonly current: string | null };
}

function optionsOf(drawing: Drawing): UPlot.Options {
  const { content, format, host, height, shown } = drawing;
  const { points, ticks = points, series, bands = [] } = content;
  const colour = colourIn(host);
  const lines = series.filter((one) => !isStacked(one));
  const [, max] = UPlot.rangeNum(0, largestOf(content) || 1, 0.05, true);
  const top = content.top ?? max ?? 1;
  const axis = { stroke: colour('text-3'), font: FONT, ticks: { show: false }, gap: AXIS_GAP_PX };
  const grid = { stroke: colour('line'), width: 1 };
  return {
    width: host.clientWidth,
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: () => [-0.5, Math.max(0.5, points.length - 0.5)] },
      y: { range: () => [0, top] },
    },
    axes: [
      {
        ...axis,
        size: AXIS_X_PX,
        grid: { show: false },
        splits: (u) => tickPoints(points.length, u.bbox.width / devicePixelRatio, TICK_PX),
        values: (_, splits) => splits.map((at) => ticks[at] ?? ''),
      },
      {
        ...axis,
        grid,
        incrs: isWhole(content) ? WHOLE_STEPS : STEPS,
        size: (_, values) => axisWidth(values),
        values: (_, splits) => splits.map(format),
      },
    ],
    series: [
      {},
      ...bands.flatMap(() => [{ points: { show: false } }, { points: { show: false } }]),
      ...lines.map(({ id, colour: token, dashed = false }) => ({
        stroke: () => faded(colour(token), shown.current !== null && shown.current !== id),
        width: 2,
        ...(dashed ? { dash: [6, 4] } : {}),
        points: { show: points.length < 3 },
      })),
    ],
    bands: bands.map(({ colour: token }, at) => ({
      series: [2 * at + 1, 2 * at + 2],
      fill: alpha(colour(token), BAND_ALPHA),
    })),
    hooks: {
      drawAxes: [
        (u) => {
          drawStack(u, drawing, colour);
        },
      ],
      draw: [
        (u) => {
          drawLimits(u, content, colour);
          drawMarks(u, content, colour);
        },
      ],
    },
  };
}

/** Returns true for counts: half a trace would stand on the axis under a rounded name. */
const isWhole = ({ series, bands = [], limits = [], top }: ChartContent): boolean =>
  top === undefined &&
  [
    ...series.flatMap(({ values }) => values),
    ...bands.flatMap(({ high }) => high),
    ...limits.map(({ value }) => value),
  ].every((value) => value === null || Number.isInteger(value));

/** Returns the width of the vertical axis. uplot asks before there are labels, with null for them. */
function axisWidth(labels: readonly string[] | null): number {
  return AXIS_GAP_PX + 2 + Math.max(20, ...(labels ?? []).map(({ length }) => length * CHARACTER_PX));
}

type Colour = (token: ColourToken | 'line' | 'surface') => string;

function colourIn(host: HTMLElement): Colour {
  const style = getComputedStyle(host);
  return (token) => style.getPropertyValue(`--${token}`).trim();
}

/** Returns a colour of six hexadecimal digits with an opacity. */
const alpha = (colour: string, share: number): string =>
  `${colour}${Math.round(share * 255)
    .toString(16)
    .padStart(2, '0')}`;
const faded = (colour: string, isFaded: boolean): string => (isFaded ? alpha(colour, FADED) : colour);

function drawStack(u: UPlot, { content, shown }: Drawing, colour: Colour): void {
  const { points, series } = content;
  const stacked = series.filter(isStacked);
  const parts = stackOf(series, points.length);
  const { ctx } = u;
  const x = (at: number): number => u.valToPos(at, 'x', true);
  const y = (value: number): number => u.valToPos(value, 'y', true);
  const step = u.bbox.width / Math.max(1, points.length);
  const width = Math.max(1, step * BAR_SHARE);
  ctx.save();
  for (const [index, { id, low, high }] of parts.entries()) {
    const one = stacked[index];
    if (one === undefined) continue;
    ctx.fillStyle = faded(colour(one.colour), shown.current !== null && shown.current !== id);
    if (one.form === 'bar')
      for (let at = 0; at < points.length; at++) {
        const [bottom, edge] = [y(low[at] ?? 0), y(high[at] ?? 0)];
        if (bottom > edge) ctx.fillRect(x(at) - width / 2, edge, width, bottom - edge);
      }
    else {
      ctx.beginPath();
      for (let at = 0; at < points.length; at++) ctx.lineTo(x(at), y(high[at] ?? 0));
      for (let at = points.length - 1; at >= 0; at--) ctx.lineTo(x(at), y(low[at] ?? 0));
      ctx.fill();
    }
  }
  ctx.restore();
}

function drawLimits(u: UPlot, { limits = [] }: ChartContent, colour: Colour): void {
  const { ctx } = u;
  ctx.save();
  ctx.font = FONT.replace('11px', `${11 * devicePixelRatio}px`);
  ctx.lineWidth = devicePixelRatio;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'bottom';
  for (const { value, label, colour: token } of limits) {
    const y = u.valToPos(value, 'y', true);
    ctx.strokeStyle = ctx.fillStyle = colour(token);
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(u.bbox.left, y);
    ctx.lineTo(u.bbox.left + u.bbox.width, y);
    ctx.stroke();
    ctx.fillText(label, u.bbox.left + u.bbox.width - 4 * devicePixelRatio, y - 2 * devicePixelRatio);
  }
  ctx.restore();
}

/** A triangle above the stack or the highest line of a point. */
function drawMarks(u: UPlot, { marks = [], series, points }: ChartContent, colour: Colour): void {
  const { ctx } = u;
  const heights = stackOf(series, points.length).at(-1)?.high ?? [];
  const lines = series.filter((one) => !isStacked(one));
  const half = MARK_PX * devicePixelRatio;
  ctx.save();
  for (const { at, colour: token } of marks) {
    const height = Math.max(heights[at] ?? 0, ...lines.map(({ values }) => values[at] ?? 0));
    const [x, y] = [u.valToPos(at, 'x', true), Math.max(u.bbox.top + 2 * half, u.valToPos(height, 'y', true) - 2)];
    ctx.fillStyle = colour(token);
    ctx.beginPath();
    ctx.moveTo(x, y - 2 * half);
    ctx.lineTo(x + half, y - half / 2);
    ctx.lineTo(x - half, y - half / 2);
    ctx.fill();
  }
  ctx.restore();
}

function geometryOf(u: UPlot): Geometry {
  const { left, top, width, height } = u.bbox;
  const ratio = devicePixelRatio;
  return {
    left: left / ratio,
    top: top / ratio,
    width: width / ratio,
    height: height / ratio,
    max: u.scales['y']?.max ?? 1,
  };
}
