// Line charts as SVG text, for the reports of benchmarks and soak runs: axes with ticks at round
// numbers, a grid and a legend.

/**
 * One line: its points, in the order in which they are joined. A value that is not finite, or not
 * above 0 on a logarithmic axis, breaks the line.
 */
export interface Series {
  name: string;
  /**
   * Lines with the same value share a colour, and all but the first of them are dashed. Default:
   * the line has a colour of its own.
   */
  of?: string;
  points: readonly (readonly [x: number, y: number])[];
}

export interface LineChart {
  title: string;
  x_label: string;
  y_label: string;
  series: readonly Series[];
  /** True for a logarithmic axis, in decades. */
  log_x?: boolean;
  log_y?: boolean;
}

const WIDTH = 880;
const PLOT = { left: 78, right: 860, height: 300 };
const TITLE_HEIGHT = 30;
const LEGEND_LINE = 18;
const LEGEND_GAP = 34;
/** Assumed maximum width of a character in the 12 px font, in pixels. */
const LETTER_WIDTH = 6.8;
const AXIS_HEIGHT = 48;
/** Approximate number of labels that fit beside an axis. */
const TICKS = { x: 9, y: 6 };
/** A logarithmic axis of fewer decades than this also has ticks at 2 and 5. */
const FEW_DECADES = 3;
/**
 * A point may exceed the last tick by this fraction of the tick and still be drawn past the end of
 * the axis.
 */
const TICK_SLACK = 0.03;
/** Lines with at most this many points show a mark at each point. */
const FEW_POINTS = 12;
/**
 * Distinguishable with colour blindness (Okabe and Ito). Lines from the ninth on reuse the colours,
 * dashed.
 */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#8a7500'];

/**
 * Largest absolute value that an axis accepts. Beyond it, and nearer to 0 than its inverse, doubles
 * are too coarse to compute ticks.
 */
const LARGEST = 1e100;
/** A range smaller than this fraction of its values is rounding noise: the line is flat. */
const NOISE = 1e-9;

interface Axis {
  ticks: readonly number[];
  /** Maps a value to its position along the axis, from 0 to 1. NaN maps to NaN. */
  place: (value: number) => number;
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const rounded = (pixels: number): string => String(Math.round(pixels * 10) / 10);

/** Returns 1, 2 or 5 times a power of ten, so that about `count` steps fill the span. */
function stepOf(span: number, count: number): number {
  const decade = 10 ** Math.floor(Math.log10(span / count));
  const step = [1, 2, 5, 10].find((factor) => span / (factor * decade) <= count) ?? 10;
  return step * decade;
}

function linearAxis(values: readonly number[], count: number): Axis {
  const [low, high] = values.length === 0 ? [0, 1] : bounds(values);
  const size = Math.max(Math.abs(low), Math.abs(high));
  const room = high - low > size * NOISE ? high - low : size || 1;
  const step = stepOf(room, count);
  const first = Math.floor(low / step);
  const last = Math.max(Math.ceil(high / step), first + 1);
  // Multiples rather than sums, to avoid ticks such as 0.30000000000000004.
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const ticks = Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toFixed(Math.min(digits, 100))),
  );
  return { ticks, place: (value) => (value - first * step) / ((last - first) * step) };
}

function logAxis(values: readonly number[]): Axis {
  const [low, high] = values.length === 0 ? [1, 10] : bounds(values);
  const first = Math.floor(Math.log10(low));
  const last = Math.max(Math.ceil(Math.log10(high)), first + 1);
  const factors = last - first < FEW_DECADES ? [1, 2, 5] : [1];
  const all = Array.from({ length: last - first + 1 }, (_, index) =>
    factors.map((factor) => Number((factor * 10 ** (first + index)).toPrecision(1))),
  ).flat();
  // From the last tick below all points to the first tick above them, so that no half of a chart is
  // empty.
  const from = all.findLastIndex((tick) => tick <= low * (1 + TICK_SLACK));
  const until = all.findIndex((tick) => tick >= high * (1 - TICK_SLACK));
  const ticks = all.slice(Math.max(0, from), Math.max(until, from + 1) + 1);
  const [begin, end] = [Math.log10(ticks[0] ?? 1), Math.log10(ticks.at(-1) ?? 10)];
  return { ticks, place: (value) => (Math.log10(value) - begin) / (end - begin) };
}

/**
 * Returns the minimum and maximum. Math.min(...values) would fail: a run has more points than a
 * call accepts arguments.
 */
const bounds = (values: readonly number[]): [number, number] =>
  values.reduce<[number, number]>(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Infinity, -Infinity],
  );

const UNITS: readonly (readonly [number, string])[] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e4, 'k'],
];

/** Formats a tick: 1500000 as 1.5M, small numbers unchanged. */
function tickText(value: number): string {
  const [unit, letter] = UNITS.find(([size]) => Math.abs(value) >= size) ?? [1, ''];
  // Thousands are abbreviated from 10,000 on, so a tick of 5000 beside 20k stays unabbreviated.
  const [size, suffix] = letter === 'k' ? [1e3, 'k'] : [unit, letter];
  const short = Number((value / size).toPrecision(6));
  return Math.abs(short) < 1e-4 && short !== 0 ? short.toExponential() : `${short}${suffix}`;
}

/** Returns a value that the axis can place, or NaN if it cannot. */
function usable(value: number, log: boolean): number {
  if (!(Math.abs(value) <= LARGEST)) return NaN;
  const near = Math.abs(value) < 1 / LARGEST ? 0 : value;
  return log && near <= 0 ? NaN : near;
}

/** Returns the segments of a line between its breaks, as SVG point lists. */
function strokes(points: Series['points'], x: Axis, y: Axis, top: number): string[] {
  const parts: string[][] = [[]];
  for (const [px, py] of points) {
    const [along, up] = [x.place(px), y.place(py)];
    if (Number.isNaN(along + up)) parts.push([]);
    else
      parts
        .at(-1)
        ?.push(`${rounded(PLOT.left + along * (PLOT.right - PLOT.left))},${rounded(top + (1 - up) * PLOT.height)}`);
  }
  return parts.filter((part) => part.length > 0).map((part) => part.join(' '));
}

interface Pen {
  colour: string;
  /** The dash attribute of the line, or an empty string. */
  dash: string;
}

function pensOf(series: readonly Series[]): Pen[] {
  const things = [...new Set(series.map(({ name, of = name }) => of))];
  const seen = new Set<string>();
  return series.map(({ name, of = name }) => {
    const index = things.indexOf(of);
    const dashed = seen.has(of) || index >= COLOURS.length;
    seen.add(of);
    return { colour: COLOURS[index % COLOURS.length] ?? '', dash: dashed ? ' stroke-dasharray="6 3"' : '' };
  });
}

/** Draws the names with their colours, on as many lines as they need. */
function legend(series: readonly Series[], pens: readonly Pen[]): { svg: string[]; height: number } {
  let [x, line] = [PLOT.left, 0];
  const svg = series.map(({ name }, index) => {
    const width = LEGEND_GAP + name.length * LETTER_WIDTH;
    if (x > PLOT.left && x + width > WIDTH) [x, line] = [PLOT.left, line + 1];
    const at = TITLE_HEIGHT + line * LEGEND_LINE + 10;
    const entry = `<line x1="${rounded(x)}" y1="${at}" x2="${rounded(x + 18)}" y2="${at}" stroke="${pens[index]?.colour ?? ''}" stroke-width="2"${pens[index]?.dash ?? ''}/><text x="${rounded(x + 23)}" y="${at + 4}">${escaped(name)}</text>`;
    x += width;
    return entry;
  });
  return { svg, height: (line + 1) * LEGEND_LINE };
}

/**
 * Draws one segment of a line. Points of a short segment are marked: they are single measurements,
 * and a lone point is invisible as a line.
 */
function strokeSvg(points: string, pen: Pen | undefined): string[] {
  const { colour, dash } = pen ?? { colour: '', dash: '' };
  const each = points.split(' ');
  const line = `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="1.5" stroke-linejoin="round"${dash}/>`;
  const marks = each.map(
    (point) => `<circle cx="${point.split(',')[0] ?? ''}" cy="${point.split(',')[1] ?? ''}" r="2.5" fill="${colour}"/>`,
  );
  return [...(each.length > 1 ? [line] : []), ...(each.length <= FEW_POINTS ? marks : [])];
}

/**
 * Returns the chart as a complete SVG document. A series without points appears in the legend only.
 */
export function lineChart({ title, x_label, y_label, series, log_x = false, log_y = false }: LineChart): string {
  const all = series.map(({ points }) => points.map(([px, py]) => [usable(px, log_x), usable(py, log_y)] as const));
  const drawn = all.flat().filter(([px, py]) => !Number.isNaN(px + py));
  const [xs, ys] = [drawn.map(([px]) => px), drawn.map(([, py]) => py)];
  const x = log_x ? logAxis(xs) : linearAxis(xs, TICKS.x);
  const y = log_y ? logAxis(ys) : linearAxis(ys, TICKS.y);
  const pens = pensOf(series);
  const names = legend(series, pens);
  const top = TITLE_HEIGHT + names.height + 12;
  const bottom = top + PLOT.height;
  const height = bottom + AXIS_HEIGHT;
  const grid = (x1: number, y1: number, x2: number, y2: number): string =>
    `<line x1="${rounded(x1)}" y1="${rounded(y1)}" x2="${rounded(x2)}" y2="${rounded(y2)}" stroke="#ddd"/>`;
  const xTicks = x.ticks.map((tick) => {
    const at = PLOT.left + x.place(tick) * (PLOT.right - PLOT.left);
    return `${grid(at, top, at, bottom)}<text x="${rounded(at)}" y="${bottom + 17}" text-anchor="middle">${tickText(tick)}</text>`;
  });
  const yTicks = y.ticks.map((tick) => {
    const at = top + (1 - y.place(tick)) * PLOT.height;
    return `${grid(PLOT.left, at, PLOT.right, at)}<text x="${PLOT.left - 7}" y="${rounded(at + 4)}" text-anchor="end">${tickText(tick)}</text>`;
  });
  const lines = all.flatMap((one, index) =>
    strokes(one, x, y, top).flatMap((points) => strokeSvg(points, pens[index])),
  );
  const middle = top + PLOT.height / 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12" fill="#222">`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="${PLOT.left}" y="20" font-size="15" font-weight="bold">${escaped(title)}</text>`,
    ...names.svg,
    ...xTicks,
    ...yTicks,
    `<path d="M${PLOT.left} ${top}V${bottom}H${PLOT.right}" fill="none" stroke="#222"/>`,
    ...lines,
    `<text x="${(PLOT.left + PLOT.right) / 2}" y="${height - 10}" text-anchor="middle">${escaped(x_label)}</text>`,
    `<text x="16" y="${middle}" text-anchor="middle" transform="rotate(-90 16 ${middle})">${escaped(y_label)}</text>`,
    '</svg>',
    '',
  ].join('\n');
}
