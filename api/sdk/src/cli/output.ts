// What a command prints. Records go to standard output: as a table for a person, as one JSON
// document a line for a program. Notes and progress go to standard error. Texts of traces are data
// that strangers wrote, so no control character of theirs reaches a terminal.
import { UsageError } from './command.ts';
import { type Column, plain, tableOf, type Tone, toned } from './table.ts';

/** Width of a table where no terminal tells its own. */
const WIDTH = 120;

/** Control characters that JSON.stringify leaves as they are. */
const escaped = (json: string): string =>
  json.replaceAll(/[\u007f-\u009f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Returns the width of a terminal. One without a window, such as that of `script`, says 0. */
export const widthOfTerminal = ({ isTTY, columns }: NodeJS.WriteStream): number =>
  isTTY && columns > 0 ? columns : WIDTH;

export class Output {
  readonly isTable: boolean;
  readonly #hasColours: boolean;
  readonly #out: NodeJS.WriteStream;
  readonly #err: NodeJS.WriteStream;

  /** @throws UsageError */
  constructor(format: string | undefined, out = process.stdout, err = process.stderr) {
    if (format !== undefined && format !== 'table' && format !== 'ndjson')
      throw new UsageError('--output must be table or ndjson');
    this.isTable = format === undefined ? out.isTTY : format === 'table';
    this.#hasColours = out.isTTY && out.hasColors();
    this.#out = out;
    this.#err = err;
  }

  /** Prints records of one kind. */
  async records<T>(records: readonly T[], columns: readonly Column<T>[], empty = 'Nothing found.'): Promise<void> {
    if (!this.isTable) for (const record of records) await this.json(record);
    else if (records.length === 0) this.note(empty);
    else {
      const width = widthOfTerminal(this.#out);
      await this.line(tableOf(records, columns, { width, hasColours: this.#hasColours }));
    }
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

  /** Returns the text in colour where the terminal has colours. */
  toned(text: string, tone: Tone | null): string {
    return tone === null || !this.#hasColours ? text : toned(text, tone);
  }

  /** Tells the person something that is no record. */
  note(text: string): void {
    this.#err.write(`${plain(text)}\n`);
  }
}

/** Returns an amount of USD: cents from a dollar on, four digits that count below. */
export const usd = (amount: number): string =>
  amount === 0 ? '$0' : amount >= 1 ? `$${amount.toFixed(2)}` : `$${Number(amount.toPrecision(4))}`;

export const milliseconds = (ms: number): string => (ms < 10_000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

export const count = (amount: number): string => amount.toLocaleString('en-US');

const BAR_WIDTH = 20;

/** Returns a bar whose length is the share of an amount in the largest one. */
export const barOf = (amount: number, largest: number): string =>
  largest <= 0 ? '' : '█'.repeat(Math.round((amount / largest) * BAR_WIDTH)) || (amount > 0 ? '▏' : '');

/** Returns the tone of an outcome of a trace or span. */
export const toneOfOutcome = (outcome: string): Tone | null => (outcome === 'success' ? null : 'bad');

const two = (number: number): string => String(number).padStart(2, '0');

/** Returns a time of this machine's time zone: without the year in the current one, without seconds else. */
export function localTime(iso: string, now = new Date()): string {
  const at = new Date(iso);
  const day = `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const minute = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return at.getFullYear() === now.getFullYear()
    ? `${day} ${minute}:${two(at.getSeconds())}`
    : `${at.getFullYear()}-${day} ${minute}`;
}
