// What a command prints. Records go to standard output: as a table for a person, as one JSON
// document a line for a program. Notes and progress go to standard error. Texts of traces are data
// that strangers wrote, so no control character of theirs reaches a terminal.
import { UsageError } from './command.ts';

export interface Column<T> {
  title: string;
  value: (record: T) => string | number | null | undefined;
  /** Numbers stand on the right. */
  isRight?: boolean;
}

/** Width of a table on a terminal that does not tell its own. */
const WIDTH = 120;
const CELL_WIDTH_MIN = 8;
const GAP = '  ';

/** Returns the text without control characters and marks that change the direction of the text. */
export const plain = (text: string): string =>
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ');

/** Control characters that JSON.stringify leaves as they are. */
const escaped = (json: string): string =>
  json.replaceAll(/[\u007f-\u009f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

export class Output {
  readonly isTable: boolean;
  readonly #out: NodeJS.WriteStream;
  readonly #err: NodeJS.WriteStream;

  /** @throws UsageError */
  constructor(format: string | undefined, out = process.stdout, err = process.stderr) {
    if (format !== undefined && format !== 'table' && format !== 'ndjson')
      throw new UsageError('--output must be table or ndjson');
    this.isTable = format === undefined ? out.isTTY : format === 'table';
    this.#out = out;
    this.#err = err;
  }

  /** Prints records of one kind. */
  async records<T>(records: readonly T[], columns: readonly Column<T>[], empty = 'Nothing found.'): Promise<void> {
    if (!this.isTable) for (const record of records) await this.json(record);
    else if (records.length === 0) this.note(empty);
    else await this.line(tableOf(records, columns, this.#out.isTTY ? this.#out.columns : WIDTH));
  }

  /** Prints one record, or the lines that show it to a person. */
  async record(record: unknown, lines: () => string): Promise<void> {
    if (this.isTable) await this.line(lines());
    else await this.json(record);
  }

  json(record: unknown): Promise<void> {
    return this.line(escaped(JSON.stringify(record)));
  }

  line(text: string): Promise<void> {
    return this.write(`${text}\n`);
  }

  /** Writes to standard output. Resolves once there is room for more. */
  async write(text: string | Uint8Array): Promise<void> {
    if (this.#out.write(text)) return;
    await new Promise<void>((resolve) => {
      this.#out.once('drain', resolve);
      this.#out.once('close', resolve);
    });
  }

  /** Tells the person something that is no record. */
  note(text: string): void {
    this.#err.write(`${plain(text)}\n`);
  }
}

/** Returns records as a table that fits into the width. */
function tableOf<T>(records: readonly T[], columns: readonly Column<T>[], width: number): string {
  const rows = records.map((record) => columns.map(({ value }) => plain(String(value(record) ?? '–'))));
  const widths = columns.map(({ title }, at) => Math.max(title.length, ...rows.map((row) => lengthOf(row[at] ?? ''))));
  shrink(widths, width - GAP.length * (columns.length - 1));
  const lineOf = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => padded(cut(cell, widths[at] ?? 0), widths[at] ?? 0, columns[at]?.isRight === true))
      .join(GAP)
      .trimEnd();
  return [columns.map(({ title }) => title), ...rows].map(lineOf).join('\n');
}

/** Makes the widest column narrower until all fit. */
function shrink(widths: number[], room: number): void {
  for (let over = widths.reduce((sum, one) => sum + one, 0) - room; over > 0; over -= 1) {
    const widest = Math.max(...widths);
    if (widest <= CELL_WIDTH_MIN) return;
    widths[widths.indexOf(widest)] = widest - 1;
  }
}

const lengthOf = (text: string): number => Array.from(text).length;

function cut(text: string, width: number): string {
  const chars = Array.from(text);
  return chars.length <= width ? text : `${chars.slice(0, Math.max(0, width - 1)).join('')}…`;
}

function padded(text: string, width: number, isRight: boolean): string {
  const fill = ' '.repeat(Math.max(0, width - lengthOf(text)));
  return isRight ? fill + text : text + fill;
}

/** Returns an amount of USD: cents from a dollar on, four digits that count below. */
export const usd = (amount: number): string =>
  amount === 0 ? '$0' : amount >= 1 ? `$${amount.toFixed(2)}` : `$${Number(amount.toPrecision(4))}`;

export const milliseconds = (ms: number): string => (ms < 10_000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

export const count = (amount: number): string => amount.toLocaleString('en-US');
