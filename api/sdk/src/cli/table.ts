// Lays records out as a table. Cells are cut and columns left out until the table fits the terminal;
// ids and times stay whole, because people copy them.

export type Tone = 'bad' | 'warning' | 'faint';

export interface Column<T> {
  title: string;
  value: (record: T) => string | number | null | undefined;
  /** Numbers stand on the right. */
  isRight?: boolean;
  /** True for cells that are never cut. */
  isWhole?: boolean;
  /** True for a column that is left out of a table that is too wide; the last goes first. */
  isOptional?: boolean;
  /** Colour of the cell where the terminal has colours. */
  tone?: (record: T) => Tone | null;
}

/** Texts are cut to the first before a column is left out, and to the second where none is left to leave out. */
const CELL_WIDTH_GOOD = 14;
const CELL_WIDTH_MIN = 8;
const GAP = '  ';
const TONES: Readonly<Record<Tone | 'title', string>> = { bad: '31', warning: '33', faint: '2', title: '1' };

/** Colours a text for a terminal. */
export const toned = (text: string, tone: Tone | 'title'): string => `\u001b[${TONES[tone]}m${text}\u001b[0m`;

/** Returns the text without control characters and marks that change the direction of the text. */
export const plain = (text: string): string =>
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ');

/** Returns records as a table of at most this width, where its whole cells allow it. */
export function tableOf<T>(
  records: readonly T[],
  columns: readonly Column<T>[],
  { width, hasColours }: { width: number; hasColours: boolean },
): string {
  const cells = records.map((record) => columns.map(({ value }) => plain(String(value(record) ?? '–'))));
  const natural = columns.map(({ title }, at) =>
    Math.max(widthOf(title), ...cells.map((row) => widthOf(row[at] ?? ''))),
  );
  const shown = fitting(columns, natural, width);
  const lineOf = (row: readonly string[], toneOf: (at: number) => Tone | 'title' | null): string =>
    shown
      .map(({ at, width: cell }, place) => {
        const text = padded(cut(row[at] ?? '', cell), cell, columns[at]?.isRight === true);
        const tone = hasColours ? toneOf(at) : null;
        const last = place === shown.length - 1 ? text.trimEnd() : text;
        return tone === null ? last : toned(last, tone);
      })
      .join(GAP)
      .trimEnd();
  const titles = columns.map(({ title }) => title);
  const rows = records.map((record, index) => lineOf(cells[index] ?? [], (at) => columns[at]?.tone?.(record) ?? null));
  return [lineOf(titles, () => 'title'), ...rows].join('\n');
}

interface Shown {
  /** Index of the column. */
  at: number;
  width: number;
}

/** Returns the columns that are shown and their widths. */
function fitting<T>(columns: readonly Column<T>[], natural: readonly number[], width: number): Shown[] {
  let kept = columns.map((_, at) => at);
  for (;;) {
    const room = width - GAP.length * (kept.length - 1);
    const shown = kept.map((at) => ({ at, width: natural[at] ?? 0 }));
    const dropped = kept.findLast((at) => columns[at]?.isOptional === true);
    shrink(shown, columns, room, dropped === undefined ? CELL_WIDTH_MIN : CELL_WIDTH_GOOD);
    const isOver = shown.reduce((sum, one) => sum + one.width, 0) > room;
    if (!isOver || dropped === undefined) return shown;
    kept = kept.filter((at) => at !== dropped);
  }
}

/** Makes the widest column that may be cut narrower until all fit. */
function shrink<T>(shown: Shown[], columns: readonly Column<T>[], room: number, least: number): void {
  const soft = shown.filter(({ at }) => columns[at]?.isWhole !== true && columns[at]?.isRight !== true);
  for (let over = shown.reduce((sum, one) => sum + one.width, 0) - room; over > 0; over -= 1) {
    const widest = soft.reduce<Shown | null>(
      (most, one) => (most === null || one.width > most.width ? one : most),
      null,
    );
    if (widest === null || widest.width <= least) return;
    widest.width -= 1;
  }
}

/** Characters that take two columns of a terminal, and those that take none. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const NONE = /[\p{Mn}\p{Me}\u200b-\u200d\ufe0f]/u;

const columnsOf = (char: string): number => (NONE.test(char) ? 0 : WIDE.test(char) ? 2 : 1);
const widthOf = (text: string): number =>
  /^[\u0000-\u02ff]*$/.test(text) ? text.length : Array.from(text).reduce((sum, char) => sum + columnsOf(char), 0);

function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let [kept, used] = ['', 0];
  for (const char of text) {
    used += columnsOf(char);
    if (used > width - 1) break;
    kept += char;
  }
  return `${kept}…`;
}

function padded(text: string, width: number, isRight: boolean): string {
  const fill = ' '.repeat(Math.max(0, width - widthOf(text)));
  return isRight ? fill + text : text + fill;
}

/** Returns a text in lines of at most this width, broken at spaces. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && widthOf(last) + 1 + widthOf(word) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
