// Draws the minimap of a trace: all spans with failures on one canvas, matches of the search on another above it,
// so that a key in the search field draws the matches alone. Bounded by the pixels of a canvas: what would cover
// pixels of its own colour is not drawn again.
import { unitAt } from '../../trace/model/axis.ts';
import { kindOf, type Tree } from '../../trace/model/tree.ts';
import type { Snapshot } from '../../trace/store.ts';

export const MINIMAP_PX = 36;
/** Deeper spans are drawn on the lowest line. */
const LINES = 9;
const LINE_PX = 3;
const TICK_PX = 5;
const DOT_PX = 4;
/** Dots closer to each other than this look like one. */
const DOT_STEP_PX = 2;

type Drawn = Pick<Snapshot, 'model' | 'axis'>;

interface Surface {
  context: CanvasRenderingContext2D;
  /** Returns the place of a time, in pixels from the left. */
  xOf: (time: number) => number;
  width: number;
  colour: (name: string) => string;
}

/** Returns a canvas that is empty and has the size of its element; null where it has none. */
function surfaceOf(canvas: HTMLCanvasElement, { axis }: Drawn): Surface | null {
  const width = canvas.clientWidth;
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(MINIMAP_PX * ratio);
  const context = canvas.getContext('2d');
  if (context === null || width === 0) return null;
  context.scale(ratio, ratio);
  const css = getComputedStyle(canvas);
  return {
    context,
    width,
    xOf: (time) => (unitAt(axis, time) / axis.length) * width,
    colour: (name) => css.getPropertyValue(name),
  };
}

/** Draws the spans. Every span is at least one pixel wide, so that none vanishes. */
export function drawSpans(canvas: HTMLCanvasElement, drawn: Drawn): void {
  const surface = surfaceOf(canvas, drawn);
  if (surface === null) return;
  const { context, xOf, width, colour } = surface;
  const { axis, model } = drawn;
  drawBars(surface, model.tree);
  context.fillStyle = colour('--line');
  for (const { fromUnit, toUnit } of axis.breaks) {
    for (let x = (fromUnit / axis.length) * width; x < (toUnit / axis.length) * width; x += 4)
      context.fillRect(x, 0, 1, MINIMAP_PX);
  }
  context.fillStyle = colour('--error');
  for (const i of model.failed) context.fillRect(xOf(model.tree.end[i] ?? 0) - 1, 0, 2, TICK_PX);
}

function drawBars({ context, xOf, width, colour }: Surface, tree: Tree): void {
  const colours = {
    llm: colour('--kind-llm'),
    tool: colour('--kind-tool'),
    event: colour('--kind-event'),
    app: colour('--kind-app'),
    judge: colour('--kind-judge'),
  };
  /** The colour of the last narrow bar that begins at each pixel of each line. */
  const last = new Map<number, string>();
  for (let i = 0; i < tree.size; i += 1) {
    const x = xOf(tree.start[i] ?? 0);
    const wide = Math.max(1, xOf(tree.end[i] ?? 0) - x);
    const line = Math.min(tree.depth[i] ?? 0, LINES - 1);
    const style = colours[kindOf(tree, i)];
    if (wide === 1) {
      const pixel = line * width + Math.floor(x);
      if (last.get(pixel) === style) continue;
      last.set(pixel, style);
    }
    context.fillStyle = style;
    context.fillRect(x, TICK_PX + 1 + line * LINE_PX, wide, LINE_PX - 1);
  }
}

/** Draws a dot for every match; one for those that stand beside each other. */
export function drawMatches(canvas: HTMLCanvasElement, drawn: Drawn, spans: Int32Array): void {
  const surface = surfaceOf(canvas, drawn);
  if (surface === null) return;
  const { context, xOf, width, colour } = surface;
  const isDotted = new Uint8Array(Math.ceil(width / DOT_STEP_PX) + 1);
  context.fillStyle = colour('--warn');
  for (const i of spans) {
    const x = xOf(drawn.model.tree.start[i] ?? 0);
    const at = Math.floor(x / DOT_STEP_PX);
    if (isDotted[at] === 1) continue;
    isDotted[at] = 1;
    context.fillRect(x - DOT_PX / 2, MINIMAP_PX - DOT_PX - 1, DOT_PX, DOT_PX);
  }
}
