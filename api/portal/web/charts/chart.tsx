// A chart over evenly spaced points: stacks of bars or areas, lines, bands, marks and limits. The
// picture is a canvas that loads when it is needed; around it stand its name in words, a legend in the
// order of the stack, a readout of the point under the pointer, and a table of the same numbers (`T`).
// Arrow keys move through the points, Up and Down through the parts of a stack, Enter does the same as a
// click, Shift extends a stretch as a drag does.
import { type KeyboardEvent, type PointerEvent, type ReactElement, useMemo, useRef, useState } from 'react';
import frame from '../lists/histogram.module.css';
import { useKeys } from '../shell/keys.ts';
import { exact as exactNumber } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { cx } from '../ui/cx.ts';
import { deferred } from '../ui/deferred.tsx';
import {
  type ChartContent,
  type Geometry,
  isStacked,
  orderedEnds,
  partAt,
  pointAt,
  type Stretch,
  stretchAfter,
  totalAt,
} from './chart_shape.ts';
import { ChartTable } from './chart_table.tsx';
import styles from './chart.module.css';
import { Swatch } from './swatch.tsx';

const Plot = deferred(
  () => import('./plot.tsx'),
  ({ height }) => <div style={{ height }} aria-busy="true" />,
);
const HEIGHT_PX = 240;
const HINT = 'Point at the chart or use the arrow keys to read its values';

interface ChartProps extends ChartContent {
  /** Accessible name of the chart: "Cost by day and model". */
  name: string;
  /** The same in numbers, read out with the name: "$12.40 in 30 days, most on 12 November." */
  summary: string;
  /** Name of the points as a column of the table. */
  axis: string;
  /** Writes a value; the same form is on the axis. */
  format: (value: number | null) => string;
  /** Writes all digits of a value, for tooltips. */
  exact?: (value: number | null) => string;
  height?: number;
  /** A click or Enter on a point; the series is the part of the stack, or null. */
  onPick?: (at: number, series: string | null) => void;
  /** Effect of a click, for the readout: "Enter shows its traces". */
  pick?: string;
  /** A drag, or Shift with arrows and Enter. */
  onBrush?: (from: number, to: number) => void;
  /** False for further charts of a screen: `T` belongs to the first. */
  tableKey?: boolean;
  /** True while newer numbers load. */
  stale?: boolean;
}

/** The chart with its legend, or its table. */
export function Chart(props: ChartProps): ReactElement {
  const { name, axis, format, exact = exactNumber, tableKey = true, stale = false } = props;
  const { points, ticks, series, bands, marks, limits, top } = props;
  const [asTable, setAsTable] = useState(false);
  const content = useMemo(
    (): ChartContent => ({
      points,
      series,
      ...(ticks === undefined ? {} : { ticks }),
      ...(bands === undefined ? {} : { bands }),
      ...(marks === undefined ? {} : { marks }),
      ...(limits === undefined ? {} : { limits }),
      ...(top === undefined ? {} : { top }),
    }),
    [points, ticks, series, bands, marks, limits, top],
  );
  const toggle = (): void => {
    setAsTable((now) => !now);
  };
  useKeys('Chart', tableKey ? [{ keys: 'T', label: 'Show the chart as a table or as a picture', run: toggle }] : []);
  const words = asTable ? 'Show as chart' : 'Show as table';
  return (
    <div className={cx(frame.histogram, stale && 'dimmed')}>
      {asTable ? (
        <ChartTable name={name} axis={axis} content={content} format={format} exact={exact} />
      ) : (
        <Picture {...props} content={content} />
      )}
      <p className={frame.form}>
        <Button look="quiet" hint={words} onClick={toggle} {...(tableKey ? { keys: 'T' } : {})}>
          {words}
        </Button>
      </p>
    </div>
  );
}

function Picture(props: ChartProps & { content: ChartContent }): ReactElement {
  const { name, summary, content, format, height = HEIGHT_PX, onPick, onBrush, pick } = props;
  const { points } = content;
  const [geometry, setGeometry] = useState<Geometry | null>(null);
  const [stretch, setStretch] = useState<Stretch | null>(null);
  const [part, setPart] = useState<string | null>(null);
  const [named, setNamed] = useState<string | null>(null);
  const clear = (): void => {
    setStretch(null);
    setPart(null);
  };
  const choose = (chosen: Stretch): void => {
    const [from, to] = orderedEnds(chosen);
    if (from !== to || onPick === undefined) onBrush?.(from, to);
    else onPick(from, part);
  };
  const pointer = usePointer({ content, geometry, brush: onBrush !== undefined, setStretch, setPart, choose, clear });
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = stretchAfter(event, stretch, points.length);
    const up = event.key === 'ArrowUp' ? 1 : event.key === 'ArrowDown' ? -1 : 0;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' && stretch !== null) choose(stretch);
    else if (event.key === 'Escape' && stretch !== null) clear();
    else if (next !== null) setStretch(onBrush === undefined ? { from: next.to, to: next.to } : next);
    else if (up !== 0 && stretch !== null) setPart(partAfter(content, stretch.to, part, up));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = stretch === null ? null : readout(content, stretch, part, format);
  const last = Math.max(0, points.length - 1);
  return (
    <>
      <div
        className={styles.plot}
        role="slider"
        tabIndex={0}
        aria-label={`${name}. ${summary} Arrow keys move through the points.${pick === undefined ? '' : ` ${pick}.`}`}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={stretch?.to ?? last}
        aria-valuetext={shown ?? 'No point chosen'}
        onKeyDown={onKeyDown}
        onBlur={clear}
        {...pointer}
      >
        <Cursor geometry={geometry} stretch={stretch} points={points.length} />
        <Plot content={content} height={height} format={format} highlight={named ?? part} onGeometry={setGeometry} />
      </div>
      <p className={frame.axis} aria-hidden="true">
        {shown === null ? <span>{pick ?? HINT}</span> : <span className={frame.shown}>{shown}</span>}
      </p>
      <Legend content={content} at={stretch?.to ?? null} format={format} onName={setNamed} />
    </>
  );
}

interface PointerOptions {
  content: ChartContent;
  geometry: Geometry | null;
  /** True if a drag chooses a stretch. */
  brush: boolean;
  setStretch: (stretch: Stretch | null) => void;
  setPart: (part: string | null) => void;
  choose: (stretch: Stretch) => void;
  clear: () => void;
}

/** Returns the handlers of a pointer over the plot. */
function usePointer({ content, geometry, brush, setStretch, setPart, choose, clear }: PointerOptions) {
  const from = useRef<number | null>(null);
  const placeOf = (event: PointerEvent<HTMLElement>): { at: number; part: string | null } => {
    const box = event.currentTarget.getBoundingClientRect();
    if (geometry === null) return { at: -1, part: null };
    const at = pointAt(geometry, event.clientX - box.left, content.points.length);
    return { at, part: at < 0 ? null : partAt(geometry, event.clientY - box.top, content, at) };
  };
  return {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      const { at } = placeOf(event);
      if (event.button !== 0 || at < 0) return;
      from.current = at;
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      const { at, part } = placeOf(event);
      setPart(part);
      if (at >= 0) setStretch({ from: brush ? (from.current ?? at) : at, to: at });
      else if (from.current === null) setStretch(null);
    },
    onPointerUp: (event: PointerEvent<HTMLElement>) => {
      const { at } = placeOf(event);
      const began = from.current;
      from.current = null;
      if (began !== null && at >= 0) choose({ from: brush ? began : at, to: at });
    },
    onPointerCancel: () => {
      from.current = null;
      clear();
    },
    onPointerLeave: () => {
      if (from.current === null) clear();
    },
  };
}

interface CursorProps {
  geometry: Geometry | null;
  stretch: Stretch | null;
  points: number;
}

function Cursor({ geometry, stretch, points }: CursorProps): ReactElement | null {
  if (geometry === null || stretch === null || points === 0) return null;
  const [first, last] = orderedEnds(stretch);
  const step = geometry.width / points;
  const left = geometry.left + first * step;
  const width = (last - first + 1) * step;
  return <div className={styles.cursor} style={{ left, width, top: geometry.top, height: geometry.height }} />;
}

interface LegendProps {
  content: ChartContent;
  /** The point whose values stand beside the names. */
  at: number | null;
  format: (value: number | null) => string;
  /** The series whose name has the pointer or the focus. */
  onName: (id: string | null) => void;
}

function Legend({ content, at, format, onName }: LegendProps): ReactElement | null {
  const { series, bands = [], marks = [] } = content;
  if (series.length + bands.length < 2 && marks.length === 0) return null;
  const kinds = new Map(marks.map(({ kind, colour }) => [kind, colour]));
  const others = [
    ...bands.map(({ label, colour }) => ({ label, colour, band: true })),
    ...[...kinds].map(([label, colour]) => ({ label, colour, band: false })),
  ];
  return (
    <ul className={styles.legend} aria-label="Legend">
      {series.map(({ id, label, colour, values }) => (
        <li key={id}>
          <button
            type="button"
            className={styles.item}
            onFocus={() => {
              onName(id);
            }}
            onBlur={() => {
              onName(null);
            }}
            onPointerEnter={() => {
              onName(id);
            }}
            onPointerLeave={() => {
              onName(null);
            }}
          >
            <Swatch colour={colour} />
            {label}
            {at !== null && <b>{format(values[at] ?? null)}</b>}
          </button>
        </li>
      ))}
      {others.map(({ label, colour, band }) => (
        <li key={label} className={styles.item}>
          <Swatch colour={colour} band={band} />
          {label}
        </li>
      ))}
    </ul>
  );
}

/** Returns the part of the stack above or below one at a point; the first press takes the lowest or highest part. */
function partAfter({ series }: ChartContent, at: number, part: string | null, step: number): string | null {
  const ids = series.filter((one) => isStacked(one) && (one.values[at] ?? 0) > 0).map(({ id }) => id);
  const now = part === null ? -1 : ids.indexOf(part);
  if (now === -1) return (step > 0 ? ids[0] : ids.at(-1)) ?? null;
  return ids[Math.min(ids.length - 1, Math.max(0, now + step))] ?? null;
}

/** Returns a point or a stretch in words. */
function readout(
  { points, series, bands = [], marks = [] }: ChartContent,
  stretch: Stretch,
  part: string | null,
  format: (value: number | null) => string,
): string {
  const [from, to] = orderedEnds(stretch);
  const time = from === to ? points[from] : `${points[from] ?? ''} – ${points[to] ?? ''}`;
  const within = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  const sums = within.map((at) => totalAt(series, at)).filter((sum) => sum !== null);
  const total = sums.length === 0 ? [] : [format(sums.reduce((all, sum) => all + sum, 0))];
  const lines = from === to ? series.filter((one) => !isStacked(one) && (one.values[from] ?? null) !== null) : [];
  const one = series.find(({ id }) => id === part);
  const texts = [
    ...total,
    ...lines.map(({ label, values }) => `${label} ${format(values[from] ?? null)}`),
    ...(from === to ? bands : [])
      .filter(({ low }) => (low[from] ?? null) !== null)
      .map(({ label, low, high }) => `${label} ${format(low[from] ?? null)} to ${format(high[from] ?? null)}`),
    ...(one === undefined || from !== to ? [] : [`${one.label} ${format(one.values[from] ?? null)}`]),
    ...marks.filter(({ at }) => at >= from && at <= to).map(({ kind, label }) => `${kind}: ${label}`),
  ];
  return `${time ?? ''}: ${texts.length === 0 ? 'no value' : texts.join(', ')}`;
}
