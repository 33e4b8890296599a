// The histogram over a list: traces over time, by outcome. A drag chooses a stretch of time; from the
// keyboard the arrows move, Shift with them extends, and Enter chooses.
import { type KeyboardEvent, type PointerEvent, type ReactElement, useMemo, useRef, useState } from 'react';
import { useKeys } from '../shell/keys.ts';
import { usePreferences } from '../shell/preferences.ts';
import { Button } from '../ui/button.tsx';
import { cx } from '../ui/cx.ts';
import { count } from '../text/format.ts';
import { axisTimes } from '../text/format_time.ts';
import { type Bar, barAt, barsOf, type Bucket, chosenTime, totalsOf } from './histogram_shape.ts';
import { HistogramTable } from './histogram_table.tsx';
import styles from './histogram.module.css';

const HEIGHT = 100;
const WIDTH = 1000;
/** A bar that holds something is drawn at least this high, so that one error among thousands is seen. */
const SEEN = 3;

interface HistogramProps {
  buckets: readonly Bucket[];
  bucket_ms: number;
  onChoose: (since_ms: number, until_ms: number) => void;
  /** True while newer numbers load. */
  stale?: boolean;
}

interface Stretch {
  from: number;
  to: number;
}

/** Draws the histogram with its axis, or shows its numbers as a table. */
export function Histogram({ stale = false, ...props }: HistogramProps): ReactElement {
  const [asTable, setAsTable] = useState(false);
  const { zone } = usePreferences();
  const toggle = (): void => {
    setAsTable((now) => !now);
  };
  useKeys('Histogram', [{ keys: 'T', label: 'Show the histogram as a table or as bars', run: toggle }]);
  return (
    <div className={cx(styles.histogram, stale && 'dimmed')} aria-busy={stale || undefined}>
      {asTable ? <HistogramTable {...props} zone={zone} /> : <Chart {...props} zone={zone} />}
      {/* Beside the bars, so that the axis below them has their whole width. */}
      <p className={styles.beside}>
        <Button
          look="quiet"
          icon={asTable ? 'bars' : 'table'}
          keys="T"
          hint={asTable ? 'Show as bars' : 'Show as table'}
          onClick={toggle}
        />
      </p>
    </div>
  );
}

type ChartProps = Omit<HistogramProps, 'stale'> & { zone: 'local' | 'utc' };

function Chart({ buckets, bucket_ms, onChoose, zone }: ChartProps): ReactElement {
  const bars = useMemo(() => barsOf(buckets, bucket_ms), [buckets, bucket_ms]);
  const [stretch, setStretch] = useState<Stretch | null>(null);
  const dragging = useRef(false);
  const indexAt = (event: PointerEvent<HTMLElement>): number => {
    const box = event.currentTarget.getBoundingClientRect();
    return barAt(bars, (event.clientX - box.left) / Math.max(1, box.width));
  };
  const choose = ({ from, to }: Stretch): void => {
    const time = chosenTime(bars, from, to);
    setStretch(null);
    if (time !== null) onChoose(time.since_ms, time.until_ms);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = stretchAfter(event, stretch, bars.length);
    if (event.key === 'Enter' && stretch !== null) choose(stretch);
    else if (event.key === 'Escape' && stretch !== null) setStretch(null);
    else if (next !== null) setStretch(next);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = stretch === null ? null : sentence(buckets, bucket_ms, stretch, zone);
  return (
    <>
      <div
        className={styles.plot}
        role="slider"
        tabIndex={0}
        aria-label={`${summary(buckets)} Arrow keys move through time, Shift extends, Enter filters by the stretch.`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, bars.length - 1)}
        aria-valuenow={stretch?.to ?? Math.max(0, bars.length - 1)}
        aria-valuetext={shown ?? 'Nothing chosen'}
        onKeyDown={onKeyDown}
        onBlur={() => {
          setStretch(null);
        }}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          dragging.current = true;
          event.currentTarget.setPointerCapture(event.pointerId);
          const at = indexAt(event);
          setStretch({ from: at, to: at });
        }}
        onPointerMove={(event) => {
          const at = indexAt(event);
          setStretch((now) => (dragging.current && now !== null ? { ...now, to: at } : { from: at, to: at }));
        }}
        onPointerLeave={() => {
          if (!dragging.current) setStretch(null);
        }}
        onPointerUp={() => {
          if (dragging.current && stretch !== null) choose(stretch);
          dragging.current = false;
        }}
        onPointerCancel={() => {
          dragging.current = false;
          setStretch(null);
        }}
      >
        <Bars bars={bars} stretch={stretch} />
      </div>
      <p className={styles.axis} aria-hidden="true">
        <Axis bars={bars} zone={zone} shown={shown} />
      </p>
    </>
  );
}

function Bars({ bars, stretch }: { bars: readonly Bar[]; stretch: Stretch | null }): ReactElement {
  const first = stretch === null ? undefined : bars[Math.min(stretch.from, stretch.to)];
  const last = stretch === null ? undefined : bars[Math.max(stretch.from, stretch.to)];
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {first !== undefined && last !== undefined && (
        <rect
          className={styles.chosen}
          x={first.x * WIDTH}
          width={(last.x + last.width - first.x) * WIDTH}
          y={0}
          height={HEIGHT}
        />
      )}
      {bars.map((bar) => (
        <BarShape key={bar.start_ms} bar={bar} />
      ))}
      <line className={styles.base} x1={0} x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
    </svg>
  );
}

function BarShape({ bar }: { bar: Bar }): ReactElement {
  const gap = bar.width * WIDTH > 6 ? 1.5 : 0;
  const x = bar.x * WIDTH + gap / 2;
  const width = Math.max(0.5, bar.width * WIDTH - gap);
  const height = (share: number): number => (share === 0 ? 0 : Math.max(SEEN, share * (HEIGHT - 4)));
  const parts = [
    { name: styles.success, height: height(bar.success) },
    { name: styles.timeout, height: height(bar.timeout) },
    { name: styles.error, height: height(bar.error) },
  ];
  return (
    <g>
      {parts.map((part, at) => {
        const below = parts.slice(0, at).reduce((sum, other) => sum + other.height, 0);
        return part.height === 0 ? null : (
          <rect
            key={part.name}
            className={part.name}
            x={x}
            width={width}
            y={HEIGHT - below - part.height}
            height={part.height}
          />
        );
      })}
    </g>
  );
}

function Axis({
  bars,
  zone,
  shown,
}: {
  bars: readonly Bar[];
  zone: 'local' | 'utc';
  shown: string | null;
}): ReactElement {
  const first = bars[0];
  const last = bars.at(-1);
  if (shown !== null) return <span className={styles.shown}>{shown}</span>;
  if (first === undefined || last === undefined) return <span />;
  const moments = [first.start_ms, (first.start_ms + last.end_ms) / 2, last.end_ms];
  return (
    <>
      {axisTimes(moments, first.end_ms - first.start_ms, zone, Date.now()).map((label, at) => (
        <span key={at}>{label}</span>
      ))}
    </>
  );
}

/** Returns the stretch after a key, or null for a key that does not move it. */
function stretchAfter({ key, shiftKey }: KeyboardEvent, stretch: Stretch | null, bars: number): Stretch | null {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (bars === 0) return null;
  if (key === 'Home' || key === 'End') {
    const end = key === 'Home' ? 0 : bars - 1;
    return { from: shiftKey && stretch !== null ? stretch.from : end, to: end };
  }
  if (step === undefined) return null;
  if (stretch === null) return { from: bars - 1, to: bars - 1 };
  const to = Math.min(bars - 1, Math.max(0, stretch.to + step));
  return { from: shiftKey ? stretch.from : to, to };
}

function summary(buckets: readonly Bucket[]): string {
  const { traces, errors, timeouts } = totalsOf(buckets);
  return `Traces over time: ${count(traces)} traces, ${count(errors)} errors, ${count(timeouts)} timeouts.`;
}

function sentence(buckets: readonly Bucket[], bucket_ms: number, stretch: Stretch, zone: 'local' | 'utc'): string {
  const [from, to] = stretch.from < stretch.to ? [stretch.from, stretch.to] : [stretch.to, stretch.from];
  const within = buckets.slice(from, to + 1);
  const { traces, errors, timeouts } = totalsOf(within);
  const ends = [within[0]?.start_ms ?? 0, (within.at(-1)?.start_ms ?? 0) + bucket_ms];
  const time = axisTimes(ends, bucket_ms, zone, Date.now()).join(' – ');
  const failed = [errors > 0 && `${count(errors)} failed`, timeouts > 0 && `${count(timeouts)} timed out`];
  const parts = [`${count(traces)} ${traces === 1 ? 'trace' : 'traces'}`, ...failed.filter((part) => part !== false)];
  return `${time}: ${parts.join(', ')}`;
}
