// A histogram of durations, costs or tokens with two handles, each a slider of its own: arrow keys move
// it by one range, Home and End to its ends, a drag to the range under the pointer.
import { type KeyboardEvent, type PointerEvent, type ReactElement, useRef, useState } from 'react';
import { count } from '../text/format.ts';
import { cx } from '../ui/cx.ts';
import { boundsOf, handlesOf, movedHandle, type Handles, type ValueBucket } from './value_range.ts';
import styles from './value_histogram.module.css';

const HEIGHT = 36;

interface ValueHistogramProps {
  /** Name of the value, for example Duration. */
  label: string;
  buckets: readonly ValueBucket[];
  min: number | null;
  max: number | null;
  /** Returns a value in words. */
  words: (value: number) => string;
  onChange: (min: number | null, max: number | null) => void;
}

/** The histogram and its handles. */
export function ValueHistogram({ label, buckets, min, max, words, onChange }: ValueHistogramProps): ReactElement {
  const given = handlesOf(buckets, min, max);
  const [moving, setMoving] = useState<Handles | null>(null);
  const plot = useRef<HTMLDivElement>(null);
  const handles = moving ?? given;
  const shown = boundsOf(buckets, handles);
  const commit = (next: Handles): void => {
    const bounds = boundsOf(buckets, next);
    setMoving(null);
    onChange(bounds.min, bounds.max);
  };
  const top = Math.max(1, ...buckets.map(({ traces }) => traces));
  const edge = (which: 'low' | 'high', event: PointerEvent): number => {
    const box = plot.current?.getBoundingClientRect();
    if (box === undefined) return 0;
    const at = Math.round(((event.clientX - box.left) / Math.max(1, box.width)) * buckets.length);
    return at - handles[which];
  };
  return (
    <div className={styles.histogram}>
      <div ref={plot} className={styles.plot}>
        <div className={styles.bars} aria-hidden="true">
          {buckets.map(({ from, to, traces }, at) => (
            <span
              key={from}
              className={cx(styles.bar, (at < handles.low || at >= handles.high) && styles.out)}
              style={{ height: Math.max(2, (traces / top) * HEIGHT) }}
              title={`${words(from)}${to === null ? ' and more' : ` – ${words(to)}`}: ${count(traces)} traces`}
            />
          ))}
        </div>
        {(['low', 'high'] as const).map((which) => (
          <Handle
            key={which}
            label={which === 'low' ? `${label} from` : `${label} to`}
            at={handles[which] / Math.max(1, buckets.length)}
            now={handles[which]}
            max={buckets.length}
            text={
              which === 'low'
                ? shown.min === null
                  ? 'No minimum'
                  : words(shown.min)
                : shown.max === null
                  ? 'No maximum'
                  : words(shown.max)
            }
            onStep={(by) => {
              setMoving(movedHandle(handles, which, by, buckets.length));
            }}
            onDrag={(event) => {
              setMoving(movedHandle(handles, which, edge(which, event), buckets.length));
            }}
            onDone={() => {
              if (moving !== null) commit(moving);
            }}
          />
        ))}
      </div>
      <p className={styles.words}>
        <span>{shown.min === null ? 'Any' : `From ${words(shown.min)}`}</span>
        <span>{shown.max === null ? '' : `to ${words(shown.max)}`}</span>
      </p>
    </div>
  );
}

interface HandleProps {
  label: string;
  /** Place as a share of the width. */
  at: number;
  now: number;
  max: number;
  text: string;
  onStep: (by: number) => void;
  onDrag: (event: PointerEvent) => void;
  /** Called when the handle is let go, or the key is released. */
  onDone: () => void;
}

function Handle({ label, at, now, max, text, onStep, onDrag, onDone }: HandleProps): ReactElement {
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = {
      ArrowLeft: -1,
      ArrowDown: -1,
      ArrowRight: 1,
      ArrowUp: 1,
      Home: -max,
      End: max,
    };
    const by = steps[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    onStep(by);
  };
  return (
    <div
      role="slider"
      tabIndex={0}
      className={styles.handle}
      style={{ left: `${at * 100}%` }}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={now}
      aria-valuetext={text}
      onKeyDown={onKeyDown}
      onKeyUp={onDone}
      onBlur={onDone}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) onDrag(event);
      }}
      onPointerUp={onDone}
    />
  );
}
