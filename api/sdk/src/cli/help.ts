// The help of the command line.
import { type Command, GLOBAL, type Options } from './command.ts';
import { widthOfTerminal } from './output.ts';
import { wrapped } from './table.ts';

const INTRO = `Usage: millrace <command> [options]

Reads MILLRACE_URL and MILLRACE_API_KEY. \`millrace <command> --help\` describes a command.
`;

/** Narrower right columns are not wrapped: they would be hard to read. */
const RIGHT_WIDTH_MIN = 30;
const GAP = '  ';

const outro = (): string =>
  `${wrapped(
    'Exit codes: 0 done, 1 a gate failed, 2 the command line is wrong, 3 the service refused, 4 the service does not answer.',
    widthOfTerminal(process.stdout),
  ).join('\n')}\n`;

/** Returns two columns of text, the right one wrapped to the width of the terminal. */
function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  const room = widthOfTerminal(process.stdout) - 2 * GAP.length - width;
  return rows
    .map(([left, right]) => {
      const [first = '', ...more] = room < RIGHT_WIDTH_MIN ? [right] : wrapped(right, room);
      const rest = more.map((line) => `${' '.repeat(2 * GAP.length + width)}${line}\n`);
      return `${GAP}${left.padEnd(width)}${GAP}${first}\n${rest.join('')}`;
    })
    .join('');
}

/** Returns the list of commands. */
export function overview(commands: readonly Command[]): string {
  const rows = commands.map(({ name, usage, about }) => [`${name} ${usage}`.trimEnd(), about] as const);
  return `${INTRO}\nCommands:\n${columns(rows)}\n${outro()}`;
}

/** Returns the help of one command. */
export function commandHelp({ name, usage, about, options }: Command): string {
  const own = Object.keys(options).length === 0 ? '' : `\nOptions:\n${columns(rowsOf(options))}`;
  return `Usage: millrace ${`${name} ${usage}`.trimEnd()} [options]\n\n${about}\n${own}\nOptions of every command:\n${columns(rowsOf(GLOBAL))}\n${outro()}`;
}

const rowsOf = (options: Options): [string, string][] =>
  Object.entries(options).map(([name, { short, value, about }]) => [
    `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
    about,
  ]);
