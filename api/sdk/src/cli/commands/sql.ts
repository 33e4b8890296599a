// Runs one SELECT on the organization's read-only views. With the login of an analyst the query goes
// to the analysts' endpoint, and every row is printed. With the API key alone it goes to the tool
// run_sql of the MCP server, which returns the first rows.
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { MillraceClient } from '../../client.ts';
import { MillraceError } from '../../errors.ts';
import { type Call, type Command, EXIT, type ExitCode, UsageError } from '../command.ts';
import { count, type Output } from '../output.ts';
import { printStream } from './traces.ts';

/** Rows of a table; --output ndjson prints all. */
const TABLE_ROWS_MAX = 1000;
const ROWS_BY_KEY = 1000;
const CHARS_BY_KEY = 16_000;

export const sql: Command = {
  name: 'sql',
  usage: '[<query>]',
  about:
    'Runs a SELECT on the read-only views, with the login of an analyst in MILLRACE_SQL_USER and MILLRACE_SQL_PASSWORD',
  args: [0, 1],
  options: {
    file: { type: 'string', short: 'f', value: 'FILE', about: 'File with the query; - is standard input' },
  },
  run: async ({ client, args, given, out, signal }) => {
    const query = await queryOf(args[0], given.text('file'));
    const { MILLRACE_SQL_USER: user, MILLRACE_SQL_PASSWORD: password } = process.env;
    if (user === undefined || password === undefined) return runByKey(client, query, out);
    return runAsAnalyst({ client, query, login: `${user}:${password}`, out, signal });
  },
};

/** @throws UsageError without a query, or with two */
async function queryOf(given: string | undefined, file: string | undefined): Promise<string> {
  if (given !== undefined && file !== undefined) throw new UsageError('sql takes a query or --file, not both');
  if (given !== undefined) return given;
  if (file === undefined) throw new UsageError('sql takes a query, or --file');
  return readFile(file === '-' ? '/dev/stdin' : file, 'utf8').catch((cause: unknown) => {
    throw new UsageError(`--file: ${cause instanceof Error ? cause.message : file}`);
  });
}

interface Analysis {
  client: MillraceClient;
  query: string;
  login: string;
  out: Output;
  signal: Call['signal'];
}

async function runAsAnalyst({ client, query, login, out, signal }: Analysis): Promise<ExitCode> {
  const answer = await client.ask('POST', '/', {
    query: { default_format: out.isTable ? 'JSONCompactEachRowWithNames' : 'JSONEachRow' },
    body: query,
    headers: { authorization: `Basic ${Buffer.from(login).toString('base64')}`, 'content-type': 'text/plain' },
    signal,
    timeoutMs: 0,
  });
  if (!out.isTable || answer.body === null) {
    await printStream(answer, out);
    return EXIT.ok;
  }
  const rows: unknown[][] = [];
  let columns: string[] | null = null;
  let more = false;
  for await (const line of createInterface({ input: Readable.fromWeb(answer.body as never), crlfDelay: Infinity })) {
    if (line === '') continue;
    if (rows.length >= TABLE_ROWS_MAX) {
      more = true;
      break;
    }
    const values = JSON.parse(line) as unknown[];
    if (columns === null) columns = values.map(String);
    else rows.push(values);
  }
  await printRows(out, columns ?? [], rows);
  if (more) out.note(`The first ${count(TABLE_ROWS_MAX)} rows. --output ndjson prints all.`);
  return EXIT.ok;
}

interface ToolAnswer {
  result?: {
    isError?: boolean;
    content: { text: string }[];
    structuredContent?: { items: { row: unknown[] }[]; next: string | null };
  };
  error?: { message: string };
}

async function runByKey(client: MillraceClient, query: string, out: Output): Promise<ExitCode> {
  const answer = await client.ask('POST', '/mcp', {
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'run_sql', arguments: { sql: query, max_rows: ROWS_BY_KEY, max_chars: CHARS_BY_KEY } },
    },
    headers: { accept: 'application/json, text/event-stream' },
    timeoutMs: 60_000,
  });
  const { result, error } = messageOf(await answer.text());
  if (error !== undefined || result?.isError === true || result?.structuredContent === undefined)
    throw new MillraceError(
      `sql: ${error?.message ?? reasonOf(result?.content[0]?.text) ?? 'the service gave no answer'}`,
      { status: 422 },
    );
  const { items, next } = result.structuredContent;
  const [columns = [], ...rows] = items.map(({ row }) => row);
  await printRows(out, columns.map(String), rows);
  if (next !== null)
    out.note(
      'There are more rows, or some were too long. Set MILLRACE_SQL_USER and MILLRACE_SQL_PASSWORD for all of them.',
    );
  return EXIT.ok;
}

/** Returns the text of a refusal without its code and field, which the command names itself. */
const reasonOf = (text: string | undefined): string | undefined => text?.replace(/^[a-z_]+: (?:sql: )?/, '');

/** Returns the message of an answer that is JSON, or one event of a stream. */
function messageOf(text: string): ToolAnswer {
  const data = text
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length));
  return JSON.parse(data.length === 0 ? text : data.join('\n')) as ToolAnswer;
}

async function printRows(out: Output, names: readonly string[], rows: readonly unknown[][]): Promise<void> {
  if (!out.isTable) {
    for (const row of rows) await out.json(Object.fromEntries(names.map((name, at) => [name, row[at]])));
    return;
  }
  const columns = names.map((title, at) => ({
    title,
    value: (row: unknown[]) => shown(row[at]),
    isRight: rows.length > 0 && rows.every((row) => typeof row[at] === 'number'),
  }));
  await out.records(rows, columns, 'No row.');
}

const shown = (value: unknown): string | number | null =>
  value === null || typeof value === 'string' || typeof value === 'number' ? value : JSON.stringify(value);
