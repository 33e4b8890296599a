#!/usr/bin/env node
// The command `millrace`: reads the command line, runs the command and turns errors into exit codes.
import { readFileSync } from 'node:fs';
import { MillraceClient } from '../client.ts';
import { MillraceError } from '../errors.ts';
import {
  type Command,
  EXIT,
  type ExitCode,
  type Given,
  readLine,
  Refused,
  Unreachable,
  UsageError,
} from './command.ts';
import { budgets } from './commands/budgets.ts';
import { costs } from './commands/costs.ts';
import { doctor } from './commands/doctor.ts';
import { evalsRun } from './commands/evals.ts';
import { importFile } from './commands/import.ts';
import { promptsGet, promptsLabel, promptsList, promptsPush } from './commands/prompts.ts';
import { setup } from './commands/setup.ts';
import { sql } from './commands/sql.ts';
import { tracesTail } from './commands/tail.ts';
import { tracesGet, tracesList, tracesSearch } from './commands/traces.ts';
import { commandHelp, overview } from './help.ts';
import { Output } from './output.ts';

const COMMANDS: readonly Command[] = [
  doctor,
  tracesList,
  tracesGet,
  tracesSearch,
  tracesTail,
  costs,
  budgets,
  sql,
  promptsList,
  promptsGet,
  promptsPush,
  promptsLabel,
  evalsRun,
  importFile,
  setup,
];

/** Exit code of a command that an interrupt ended, as shells count it. */
const INTERRUPTED = 130;
const WITHOUT_KEY = 'millrace: no API key was given: set MILLRACE_API_KEY, or use --api-key\n';
/** True once a command has an API key for its requests. */
let hasKey = false;
/** Aborts at the first interrupt; a second one ends the process. */
const stop = new AbortController();
/** Tries of a request of a command that runs long. */
const RETRIES_LONG = 20;
const LONG: ReadonlySet<Command> = new Set([evalsRun, importFile]);

/** Returns the command that the words begin with, and the words after its name. */
function commandOf(words: readonly string[]): { command: Command; rest: readonly string[] } | null {
  for (const command of COMMANDS) {
    const name = command.name.split(' ');
    if (name.every((word, at) => words[at] === word)) return { command, rest: words.slice(name.length) };
  }
  return null;
}

const wordsAfter = (group: readonly Command[]): string => group.map(({ name }) => name.split(' ')[1]).join(', ');

const version = (): string =>
  (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version;

async function main(words: readonly string[]): Promise<ExitCode> {
  const [first] = words;
  const found = commandOf(words);
  if (found !== null) return run(found.command, found.rest);
  if (first === '--version' || first === '-V') process.stdout.write(`${version()}\n`);
  else if (words.includes('--help') || words.includes('-h') || first === 'help') {
    const named = COMMANDS.filter(({ name }) =>
      name.startsWith(words.find((word) => /^[a-z]+$/.test(word) && word !== 'help') ?? ''),
    );
    process.stdout.write(overview(named.length === 0 ? COMMANDS : named));
  } else {
    const group = COMMANDS.filter(({ name }) => name.startsWith(`${first ?? ''} `));
    if (group.length > 0) process.stderr.write(`millrace: ${first ?? ''} takes one of ${wordsAfter(group)}\n`);
    else if (first !== undefined) process.stderr.write(`millrace: ${first} is not a command\n`);
    process.stderr.write(overview(group.length === 0 ? COMMANDS : group));
    return EXIT.usage;
  }
  return EXIT.ok;
}

async function run(command: Command, rest: readonly string[]): Promise<ExitCode> {
  const { args, given } = readLine(command, rest);
  if (given.flag('help')) {
    process.stdout.write(commandHelp(command));
    return EXIT.ok;
  }
  const [min, max] = command.args;
  if (args.length < min) throw new UsageError(`${command.name} takes ${command.usage}`);
  if (args.length > max) throw new UsageError(`${command.name}: ${args[max] ?? ''} is one argument too many`);
  const out = new Output(given.text('output'));
  return command.run({ args, given, out, client: clientOf(command, given), signal: stop.signal });
}

function clientOf(command: Command, given: Given): MillraceClient {
  const [url, apiKey] = [given.text('url'), given.text('api-key')];
  hasKey = (apiKey ?? process.env['MILLRACE_API_KEY'] ?? '') !== '';
  return new MillraceClient({
    ...(url === undefined ? {} : { url }),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(LONG.has(command) ? { maxRetries: RETRIES_LONG } : {}),
  });
}

/** Returns the exit code of an error, after printing what it says. */
function failed(error: unknown): number {
  if (stop.signal.aborted) return INTERRUPTED;
  const message = error instanceof Error ? error.message : String(error);
  const isWithoutKey = error instanceof MillraceError && error.status === 401 && !hasKey;
  process.stderr.write(isWithoutKey ? WITHOUT_KEY : `millrace: ${message}\n`);
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof Unreachable) return EXIT.unreachable;
  if (error instanceof Refused) return EXIT.refused;
  // Without an answer, or with one of a proxy before a service that is away.
  if (error instanceof MillraceError) return (error.status ?? 500) >= 500 ? EXIT.unreachable : EXIT.refused;
  return EXIT.usage;
}

for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => {
    stop.abort();
  });
// A reader such as head may leave early.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main(process.argv.slice(2)).catch(failed);
