// Follows the log files of children: prints their warnings and errors on the console, and rotates
// the files to bound them. A child writes to its file directly, so nothing is lost when the
// supervisor dies. Guarantees: a problem with a file, above all a full disk, throws nothing at the
// supervisor.
import { copyFileSync, openSync, closeSync, readSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { z } from 'zod';

const BYTES_MAX = 20 * 1024 * 1024;
const FOLLOW_MS = 500;
/** Maximum lines of one file that the console shows at a time; further lines are only counted. */
const LINES_SHOWN_MAX = 10;
const READ_BYTES_MAX = 256 * 1024;
const LEVEL_WARN = 40;

const recordShape = z.object({
  level: z.number(),
  msg: z.string().default(''),
  err: z.object({ message: z.string() }).optional(),
});

/** Returns the part of a log line that the console shows; null for none. */
export type LineFilter = (line: string) => string | null;

/** Warnings and errors of the service's own processes, which write one JSON record per line. */
export const warningsOfRecords: LineFilter = (line) => {
  if (!line.startsWith('{')) return null;
  try {
    const { level, msg, err } = recordShape.parse(JSON.parse(line));
    if (level < LEVEL_WARN) return null;
    return [msg, err?.message].filter((part) => part !== undefined && part !== '').join(': ');
  } catch {
    return null;
  }
};

/** Errors of nats-server. */
export const errorsOfNats: LineFilter = (line) =>
  /\[(ERR|FTL)\]/.test(line) ? line.replace(/^\[\d+\] \S+ \S+ /, '') : null;

/** Fatal errors of ClickHouse. A failed query is reported by the process that sent it. */
export const errorsOfClickHouse: LineFilter = (line) =>
  line.includes('<Fatal>') ? line.slice(line.indexOf('<Fatal>')) : null;

interface Followed {
  name: string;
  file: string;
  filter: LineFilter;
  rotate: boolean;
  offset: number;
  /** Size at which the file is rotated; BYTES_MAX, and more after a failed rotation. */
  bytesMax: number;
  /** True from a reported failure until the file can be followed again. */
  failing: boolean;
}

/** Follows log files until stop(). */
export class LogFollower {
  readonly #files: Followed[] = [];
  readonly #show: (line: string) => void;
  readonly #timer: NodeJS.Timeout;

  /** @param show prints one line on the console */
  constructor(show: (line: string) => void) {
    this.#show = show;
    this.#timer = setInterval(() => {
      this.turn();
    }, FOLLOW_MS);
  }

  /**
   * Follows a file from its present end.
   * @param rotate false if the writer rotates the file itself
   */
  add(name: string, file: string, filter: LineFilter, rotate: boolean): void {
    this.#files.push({ name, file, filter, rotate, offset: sizeOf(file), bytesMax: BYTES_MAX, failing: false });
  }

  /** Shows new lines, and rotates files that have grown too large. */
  turn(): void {
    for (const followed of this.#files) {
      try {
        this.#follow(followed);
        if (followed.rotate && followed.offset > followed.bytesMax) this.#rotate(followed);
        followed.failing = false;
      } catch (error) {
        if (!followed.failing) this.#show(`[${followed.name}] its log file cannot be followed: ${messageOf(error)}`);
        followed.failing = true;
      }
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.turn();
  }

  /**
   * Copies and truncates the file, because the child has it open for appending. Keeps two old
   * copies; without space for a copy, keeps none.
   */
  #rotate(followed: Followed): void {
    const { name, file } = followed;
    // Without this, a file that cannot be truncated would be rotated every time, and each attempt
    // would cost an old copy.
    followed.bytesMax = followed.offset + BYTES_MAX;
    try {
      if (sizeOf(`${file}.1`) > 0) renameSync(`${file}.1`, `${file}.2`);
      copyFileSync(file, `${file}.1`);
    } catch (error) {
      this.#show(`[${name}] ${file} is emptied without a copy: ${messageOf(error)}`);
      removePartialCopy(`${file}.1`);
    }
    truncateSync(file);
    followed.offset = 0;
    followed.bytesMax = BYTES_MAX;
  }

  #follow(followed: Followed): void {
    const size = sizeOf(followed.file);
    if (size < followed.offset) followed.offset = 0;
    if (size === followed.offset) return;
    const from = Math.max(followed.offset, size - READ_BYTES_MAX);
    const text = readRange(followed.file, from, size - from);
    // The rest of an unfinished line is read the next time.
    const whole = text.lastIndexOf(10) + 1;
    followed.offset = from + whole;
    const shown = text
      .subarray(0, whole)
      .toString('utf8')
      .split('\n')
      .map(followed.filter)
      .filter((line) => line !== null && line !== '');
    for (const line of shown.slice(0, LINES_SHOWN_MAX)) this.#show(`[${followed.name}] ${(line ?? '').slice(0, 500)}`);
    if (shown.length > LINES_SHOWN_MAX)
      this.#show(`[${followed.name}] … ${shown.length - LINES_SHOWN_MAX} more in ${followed.file}`);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

function readRange(file: string, from: number, length: number): Buffer {
  const fd = openSync(file, 'r');
  try {
    const buffer = Buffer.alloc(length);
    return buffer.subarray(0, readSync(fd, buffer, 0, length, from));
  } finally {
    closeSync(fd);
  }
}

/** Removes a partial copy, which takes up scarce space. */
function removePartialCopy(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // The partial copy stays; later rotations are unaffected.
  }
}
