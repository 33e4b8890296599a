// The log file of a child: shows its warnings and errors on the console, and keeps the file within a bound.
// The child writes to it directly, so what it says is kept when the supervisor is gone; here it is only followed and rotated.
// Guarantees: whatever becomes of a file, on a full disk above all, nothing is thrown at whoever looks after the children.
import { copyFileSync, openSync, closeSync, readSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { z } from 'zod';

const BYTES_MAX = 20 * 1024 * 1024;
const FOLLOW_MS = 500;
/** Lines of one file that the console shows in one turn; more is counted only. */
const LINES_SHOWN_MAX = 10;
const READ_BYTES_MAX = 256 * 1024;
const LEVEL_WARN = 40;

const recordShape = z.object({
  level: z.number(),
  msg: z.string().default(''),
  err: z.object({ message: z.string() }).optional(),
});

/** What of a log line the console shows; null for nothing. */
export type LineFilter = (line: string) => string | null;

/** Warnings and errors of the service's own processes (one JSON record a line). */
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

/** What ends ClickHouse; a query that fails is its asker's to report. */
export const errorsOfClickHouse: LineFilter = (line) =>
  line.includes('<Fatal>') ? line.slice(line.indexOf('<Fatal>')) : null;

interface Followed {
  name: string;
  file: string;
  filter: LineFilter;
  rotate: boolean;
  offset: number;
  /** Length from which on it is rotated: more than BYTES_MAX after that has failed. */
  bytesMax: number;
  /** Told once, until it works again. */
  failing: boolean;
}

/** Follows log files until stop(). */
export class LogFollower {
  readonly #files: Followed[] = [];
  readonly #show: (line: string) => void;
  readonly #timer: NodeJS.Timeout;

  /** @param show takes one line for the console */
  constructor(show: (line: string) => void) {
    this.#show = show;
    this.#timer = setInterval(() => {
      this.turn();
    }, FOLLOW_MS);
  }

  /** Follows a file from its present end. rotate: false where its writer does that itself. */
  add(name: string, file: string, filter: LineFilter, rotate: boolean): void {
    this.#files.push({ name, file, filter, rotate, offset: sizeOf(file), bytesMax: BYTES_MAX, failing: false });
  }

  /** Shows what is new, and rotates what has grown too large. */
  turn(): void {
    for (const followed of this.#files) {
      try {
        this.#follow(followed);
        if (followed.rotate && followed.offset > followed.bytesMax) this.#rotate(followed);
        followed.failing = false;
      } catch (error) {
        if (!followed.failing) this.#show(`[${followed.name}] its log cannot be looked after: ${messageOf(error)}`);
        followed.failing = true;
      }
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.turn();
  }

  /** Copies and truncates, since the child holds the file open for appending. Two old ones are kept; without room for one, none of this. */
  #rotate(followed: Followed): void {
    const { name, file } = followed;
    // Not to be tried with every turn where the file cannot be truncated: each try would cost an old one.
    followed.bytesMax = followed.offset + BYTES_MAX;
    try {
      if (sizeOf(`${file}.1`) > 0) renameSync(`${file}.1`, `${file}.2`);
      copyFileSync(file, `${file}.1`);
    } catch (error) {
      this.#show(`[${name}] ${file} is emptied without a copy: ${messageOf(error)}`);
      tidy(`${file}.1`);
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
    // A line that is still being written waits for the next turn.
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

/** Takes away what a copy that failed has left: it takes the room that there is too little of. */
function tidy(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // It stays as it is, and no later copy is worse off.
  }
}
