// The minimap: all spans at once on a canvas, failures as ticks, matches as dots, and the part in
// sight as a brush. The brush moves by drag and by keys.
import { type KeyboardEvent, type PointerEvent, type ReactElement, useEffect, useRef, useState } from 'react';
import { duration } from '../../text/format.ts';
import { isWhole, panBy, timeAt, viewBetween, wholeView, zoomAt } from '../../trace/model/axis.ts';
import { useTrace, useTraceStore } from '../../trace/store.ts';
import { drawMatches, drawSpans, MINIMAP_PX } from './minimap_drawing.ts';
import styles from './minimap.module.css';

/** Draws now, and again when the size of the element or the theme change. Returns the function that ends it. */
function keepDrawn(canvas: HTMLCanvasElement, draw: () => void): () => void {
  draw();
  const sizes = new ResizeObserver(draw);
  sizes.observe(canvas);
  const theme = new MutationObserver(draw);
  theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', draw);
  return () => {
    sizes.disconnect();
    theme.disconnect();
    scheme.removeEventListener('change', draw);
  };
}

function Spans(): ReactElement {
  const canvas = useRef<HTMLCanvasElement>(null);
  const model = useTrace((snapshot) => snapshot.model);
  const axis = useTrace((snapshot) => snapshot.axis);
  useEffect(() => {
    const { current } = canvas;
    if (current === null) return undefined;
    return keepDrawn(current, () => {
      drawSpans(current, { model, axis });
    });
  }, [model, axis]);
  return <canvas ref={canvas} className={styles.canvas} style={{ height: MINIMAP_PX }} />;
}

function Matches(): ReactElement {
  const canvas = useRef<HTMLCanvasElement>(null);
  const model = useTrace((snapshot) => snapshot.model);
  const axis = useTrace((snapshot) => snapshot.axis);
  const { spans } = useTrace((snapshot) => snapshot.matches);
  useEffect(() => {
    const { current } = canvas;
    if (current === null) return undefined;
    return keepDrawn(current, () => {
      drawMatches(current, { model, axis }, spans);
    });
  }, [model, axis, spans]);
  return <canvas ref={canvas} className={styles.canvas} style={{ height: MINIMAP_PX }} />;
}

/** The minimap with its brush. */
export function Minimap(): ReactElement {
  const store = useTraceStore();
  const axis = useTrace((snapshot) => snapshot.axis);
  const view = useTrace((snapshot) => snapshot.view);
  const [from, setFrom] = useState<number | null>(null);
  const unitOf = (event: PointerEvent<HTMLElement>): number => {
    const box = event.currentTarget.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * axis.length;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = {
      ArrowLeft: () => panBy(axis, view, -0.1),
      ArrowRight: () => panBy(axis, view, 0.1),
      ArrowUp: () => zoomAt(axis, view, 1.5, 0.5),
      ArrowDown: () => zoomAt(axis, view, 1 / 1.5, 0.5),
      Home: () => wholeView(axis),
    }[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    store.setView(next());
  };
  const left = (view.from / axis.length) * 100;
  const right = (view.to / axis.length) * 100;
  const shown = `${duration(timeAt(axis, view.from))} to ${duration(timeAt(axis, view.to))}`;
  return (
    <div
      role="slider"
      tabIndex={0}
      aria-label="Part of the trace in sight. Left and right arrows move it, up and down arrows zoom."
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round((left + right) / 2)}
      aria-valuetext={shown}
      title={`In sight: ${shown}. Drag to choose another part.`}
      className={styles.minimap}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setFrom(unitOf(event));
      }}
      onPointerMove={(event) => {
        if (from !== null && unitOf(event) !== from) store.setView(viewBetween(axis, from, unitOf(event)));
      }}
      onPointerUp={() => {
        setFrom(null);
      }}
      onDoubleClick={() => {
        store.setView(wholeView(axis));
      }}
    >
      <Spans />
      <Matches />
      {!isWhole(axis, view) && (
        <>
          <span className={styles.shade} style={{ left: 0, width: `${left}%` }} />
          <span className={styles.shade} style={{ left: `${right}%`, right: 0 }} />
          <span className={styles.brush} style={{ left: `${left}%`, width: `${right - left}%` }} />
        </>
      )}
    </div>
  );
}
