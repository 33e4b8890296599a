// Runs one query for a caller of the service itself, within the same fences as those of analysts: the
// same user of the engine, views, check of the query and bounds. Takes SQL without FORMAT; returns the
// first rows. A query reads the data of one organization and ends with its caller.
import { createInterface } from 'node:readline';
import { text as readText } from 'node:stream/consumers';
import { ApiError } from '../../http/errors.ts';
import type { AnalystsDeps } from './handler.ts';
import { hasEngineRoom } from './engine_room.ts';
import { checkQuery } from './parse.ts';

const FORMAT = 'JSONCompactEachRowWithNamesAndTypes';
/** Time of a query, milliseconds. */
export const SQL_MS_MAX = 30_000;
/** Bytes of rows that are read of an answer. */
const ROWS_BYTES_MAX = 4 * 1024 * 1024;
const ERROR_CHARS_MAX = 2000;

export interface SqlQuestion {
  org_id: string;
  /** Part of the query's id in the engine. */
  user: string;
  sql: string;
  rowsMax: number;
  signal: AbortSignal;
}

export interface SqlRows {
  columns: { name: string; type: string }[];
  rows: unknown[][];
  /** True when there are more rows. */
  truncated: boolean;
}

/** @throws ApiError invalid_request with the words of the engine, rate_limited, conflict */
export async function runSql(deps: Omit<AnalystsDeps, 'edge'>, question: SqlQuestion): Promise<SqlRows> {
  const { org_id, user } = question;
  const signal = AbortSignal.any([question.signal, AbortSignal.timeout(SQL_MS_MAX)]);
  const run = await deps.running.enter(org_id, user, signal);
  if (run === null)
    throw new ApiError('rate_limited', 'This organization has too many SQL queries in progress. Try again.');
  try {
    return await ask(deps, question, AbortSignal.any([signal, run.signal]));
  } catch (error) {
    if (question.signal.aborted || !signal.aborted) throw error;
    throw new ApiError('invalid_request', `sql: the query took longer than ${SQL_MS_MAX / 1000} seconds`, {
      cause: error,
    });
  } finally {
    run.leave();
  }
}

async function ask(
  { engine, confinement, room }: Omit<AnalystsDeps, 'edge'>,
  { org_id, user, sql, rowsMax }: SqlQuestion,
  signal: AbortSignal,
): Promise<SqlRows> {
  if (sql.includes('\0')) throw new ApiError('invalid_request', 'sql: must not contain a zero byte');
  const confined = await confinement.ensure();
  if (typeof confined === 'string')
    throw new ApiError('conflict', 'SQL is not available: the engine cannot confine queries to one organization.');
  const refused = await checkQuery({ engine, functions: confined.functions }, sql, { user, signal });
  if (refused !== null) throw new ApiError('invalid_request', `sql: ${refused.message}`);
  if (!(await hasEngineRoom(room, org_id, signal)))
    throw new ApiError('rate_limited', 'The engine still runs queries of this organization. Try again.');
  const params = new URLSearchParams({ database: engine.database, default_format: FORMAT });
  params.set('max_execution_time', String(SQL_MS_MAX / 1000));
  const answer = await engine.ask({ org_id, user, query: sql, params, signal });
  try {
    if (answer.statusCode !== 200) {
      const text = (await readText(answer)).slice(0, ERROR_CHARS_MAX);
      throw new ApiError(
        'invalid_request',
        `sql: ${/DB::Exception: (.*?) \(version /s.exec(text)?.[1] ?? text.trim()}`,
      );
    }
    if (answer.headers['x-clickhouse-format'] !== FORMAT)
      throw new ApiError('invalid_request', 'sql: must not have a FORMAT');
    return await firstRows(answer, rowsMax);
  } finally {
    answer.destroy();
  }
}

/** Reads the names, the types and the first rows; what follows is not read. */
async function firstRows(answer: NodeJS.ReadableStream, rowsMax: number): Promise<SqlRows> {
  const lines = createInterface({ input: answer, crlfDelay: Infinity });
  const head: string[][] = [];
  const rows: unknown[][] = [];
  let bytes = 0;
  for await (const line of lines) {
    if (line === '') continue;
    bytes += line.length;
    if (rows.length >= rowsMax || bytes > ROWS_BYTES_MAX) {
      lines.close();
      return { columns: columnsOf(head), rows, truncated: true };
    }
    const values = JSON.parse(line, withAllDigits) as unknown[];
    if (head.length < 2) head.push(values.map(String));
    else rows.push(values);
  }
  return { columns: columnsOf(head), rows, truncated: false };
}

/** Returns integers beyond 2^53 as text, because as numbers they would lose digits. */
function withAllDigits(_: string, value: unknown, { source = '' }: { source?: string } = {}): unknown {
  return typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) ? source : value;
}

const columnsOf = ([names = [], types = []]: string[][]): SqlRows['columns'] =>
  names.map((name, index) => ({ name, type: types[index] ?? '' }));
