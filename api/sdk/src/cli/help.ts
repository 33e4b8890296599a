// The help of the command line.
import { type Command, GLOBAL, type Options } from './command.ts';

const INTRO = `Usage: millrace <command> [options]

Reads MILLRACE_URL and MILLRACE_API_KEY. \`millrace <command> --help\` describes a command.
`;

const OUTRO = `Exit codes: 0 done, 1 a gate failed, 2 the command line is wrong, 3 the service refused, 4 the service does not answer.
`;

/** Returns two columns of text. */
function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('');
}

/** Returns the list of commands. */
export function overview(commands: readonly Command[]): string {
  const rows = commands.map(({ name, usage, about }) => [`${name} ${usage}`.trimEnd(), about] as const);
  return `${INTRO}\nCommands:\n${columns(rows)}\n${OUTRO}`;
}

/** Returns the help of one command. */
export function commandHelp({ name, usage, about, options }: Command): string {
  const own = Object.keys(options).length === 0 ? '' : `\nOptions:\n${columns(rowsOf(options))}`;
  return `Usage: millrace ${`${name} ${usage}`.trimEnd()} [options]\n\n${about}\n${own}\nOptions of every command:\n${columns(rowsOf(GLOBAL))}\n${OUTRO}`;
}

const rowsOf = (options: Options): [string, string][] =>
  Object.entries(options).map(([name, { short, value, about }]) => [
    `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
    about,
  ]);
