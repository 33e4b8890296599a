// The minimap: all spans at once on a canvas, failures as ticks, matches as dots, and the part in
// sight as a brush. The brush moves by drag and by keys; the canvas is drawn again only when the
// model, the matches, the size or the theme change.
import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactElement,
  type RefObject,
  useEffect,
  useRef,
  useState,
} from 'react';
import { duration } from '../../text/format.ts';
import { isWhole, panBy, timeAt, unitAt, viewBetween, wholeView, zoomAt } from '../../trace/model/axis.ts';
import { kindOf } from '../../trace/model/tree.ts';
import { type Snapshot, useTrace, useTraceStore } from '../../trace/store.ts';
import styles from './minimap.module.css';

const HEIGHT = 36;
/** Deeper spans are drawn on the lowest line. */
const LINES = 9;
const LINE_PX = 3;
const TICK_PX = 5;

/** Draws the spans. Every span is at least one pixel wide, so that none vanishes. */
function draw(canvas: HTMLCanvasElement, snapshot: Pick<Snapshot, 'model' | 'axis' | 'matches'>): void {
  const { model, axis, matches } = snapshot;
  const { tree } = model;
  const width = canvas.clientWidth;
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(HEIGHT * ratio);
  const context = canvas.getContext('2d');
  if (context === null || width === 0) return;
  context.scale(ratio, ratio);
  const css = getComputedStyle(canvas);
  const colour = (name: string): string => css.getPropertyValue(name);
  const colours = {
    llm: colour('--kind-llm'),
    tool: colour('--kind-tool'),
    event: colour('--kind-event'),
    app: colour('--kind-app'),
    judge: colour('--kind-judge'),
  };
  const xOf = (time: number): number => (unitAt(axis, time) / axis.length) * width;
  for (let i = 0; i < tree.size; i += 1) {
    const x = xOf(tree.start[i] ?? 0);
    const line = Math.min(tree.depth[i] ?? 0, LINES - 1);
    context.fillStyle = colours[kindOf(tree, i)];
    context.fillRect(x, TICK_PX + 1 + line * LINE_PX, Math.max(1, xOf(tree.end[i] ?? 0) - x), LINE_PX - 1);
  }
  context.fillStyle = colour('--line');
  for (const { fromUnit, toUnit } of axis.breaks) {
    for (let x = (fromUnit / axis.length) * width; x < (toUnit / axis.length) * width; x += 4)
      context.fillRect(x, 0, 1, HEIGHT);
  }
  context.fillStyle = colour('--error');
  for (const i of model.failed) context.fillRect(xOf(tree.end[i] ?? 0) - 1, 0, 2, TICK_PX);
  context.fillStyle = colour('--warn');
  for (const i of matches.spans) {
    context.beginPath();
    context.arc(xOf(tree.start[i] ?? 0), HEIGHT - 3, 2, 0, 7);
    context.fill();
  }
}

function useDrawing(canvas: RefObject<HTMLCanvasElement | null>): void {
  const model = useTrace((snapshot) => snapshot.model);
  const axis = useTrace((snapshot) => snapshot.axis);
  const matches = useTrace((snapshot) => snapshot.matches);
  useEffect(() => {
    const { current } = canvas;
    if (current === null) return undefined;
    const redraw = (): void => {
      draw(current, { model, axis, matches });
    };
    redraw();
    const sizes = new ResizeObserver(redraw);
    sizes.observe(current);
    const theme = new MutationObserver(redraw);
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', redraw);
    return () => {
      sizes.disconnect();
      theme.disconnect();
      scheme.removeEventListener('change', redraw);
    };
  }, [canvas, model, axis, matches]);
}

/** The minimap with its brush. */
export function Minimap(): ReactElement {
  const store = useTraceStore();
  const canvas = useRef<HTMLCanvasElement>(null);
  const axis = useTrace((snapshot) => snapshot.axis);
  const view = useTrace((snapshot) => snapshot.view);
  const [from, setFrom] = useState<number | null>(null);
  useDrawing(canvas);
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
      <canvas ref={canvas} className={styles.canvas} style={{ height: HEIGHT }} />
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
