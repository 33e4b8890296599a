// The shape of a command, and the errors by which it ends the process with a code of its own.
import { parseArgs } from 'node:util';
import type { MillraceClient } from '../client.ts';
import type { Output } from './output.ts';

/** Exit codes; scripts rely on them. */
export const EXIT = { ok: 0, gate: 1, usage: 2, refused: 3, unreachable: 4 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command line cannot be understood: exit code 2. */
export class UsageError extends Error {}

/** The service did a part of what was asked and refused the rest: exit code 3. */
export class Refused extends Error {}

/** A service does not answer, or not in time: exit code 4. */
export class Unreachable extends Error {}

export interface Option {
  type: 'string' | 'boolean';
  multiple?: boolean;
  short?: string;
  /** Placeholder of the value in the help. */
  value?: string;
  about: string;
}
export type Options = Readonly<Record<string, Option>>;

export interface Command {
  /** Words that call it, for example `traces list`. */
  name: string;
  /** Positional arguments as the help shows them; empty for none. */
  usage: string;
  about: string;
  /** Minimum and maximum number of positional arguments. */
  args: readonly [number, number];
  options: Options;
  run: (call: Call) => Promise<ExitCode>;
}

/** A command line that was understood. */
export interface Call {
  args: readonly string[];
  given: Given;
  client: MillraceClient;
  out: Output;
  /** Aborts at the first interrupt. */
  signal: AbortSignal;
}

/** Values of options. */
export class Given {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  flag(name: string): boolean {
    return this.#values[name] === true;
  }

  list(name: string): readonly string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? (value as string[]) : [];
  }

  /** @throws UsageError */
  required(name: string): string {
    const value = this.text(name);
    if (value === undefined || value === '') throw new UsageError(`--${name} is required`);
    return value;
  }

  /** @throws UsageError for anything but a whole number within the bounds */
  whole(name: string, { min, max, fallback }: { min: number; max: number; fallback: number }): number {
    const value = this.text(name);
    if (value === undefined) return fallback;
    const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN;
    if (!(number >= min && number <= max))
      throw new UsageError(`--${name} must be an integer between ${min} and ${max}`);
    return number;
  }

  /** @throws UsageError for anything but a number */
  number(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const number = Number(value);
    if (value.trim() === '' || !Number.isFinite(number)) throw new UsageError(`--${name} must be a number`);
    return number;
  }

  /** @throws UsageError for anything but one of the choices */
  choice<const T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const found = choices.find((choice) => choice === value);
    if (found === undefined) throw new UsageError(`--${name} must be one of ${choices.join(', ')}`);
    return found;
  }

  /**
   * Returns a time as ISO 8601, given so or as an age such as 30m, 24h, 7d or 2w.
   * @throws UsageError
   */
  time(name: string, now = Date.now()): string | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const age = /^(\d{1,6})([smhdw])$/.exec(value);
    const ms = age === null ? Date.parse(value) : now - Number(age[1]) * (UNIT_MS[age[2] ?? ''] ?? NaN);
    if (Number.isNaN(ms))
      throw new UsageError(`--${name} must be a time in ISO 8601, or an age such as 30m, 24h or 7d`);
    return new Date(ms).toISOString();
  }
}

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Options of every command. */
export const GLOBAL: Options = {
  url: {
    type: 'string',
    value: 'URL',
    about: 'Address of the service. Default: MILLRACE_URL, else http://127.0.0.1:8080',
  },
  'api-key': {
    type: 'string',
    value: 'KEY',
    about: 'API key. Default: MILLRACE_API_KEY, which other users cannot see',
  },
  output: { type: 'string', short: 'o', value: 'FORMAT', about: 'table or ndjson. Default: table on a terminal' },
  help: { type: 'boolean', short: 'h', about: 'Shows this help' },
};

/**
 * Reads the words after the name of a command.
 * @throws UsageError
 */
export function readLine(
  command: Pick<Command, 'options'>,
  words: readonly string[],
): { args: string[]; given: Given } {
  const config = Object.fromEntries(
    Object.entries({ ...GLOBAL, ...command.options }).map(([name, { type, multiple, short }]) => [
      name,
      { type, ...(multiple === undefined ? {} : { multiple }), ...(short === undefined ? {} : { short }) },
    ]),
  );
  try {
    const { positionals, values } = parseArgs({ args: [...words], options: config, allowPositionals: true });
    return { args: positionals, given: new Given(values) };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
