// What a tool is, and what it gets: the caller's own access to the routes of the API.
import { z } from 'zod';
import type { RouteInput } from '../http/call_route.ts';
import type { Permission } from '../http/permissions.ts';
import type { ToolAnswer } from './digest.ts';
import type { RouteAnswers } from './route_answers.ts';

/** Result of an analyst's query. */
export interface SqlAnswer {
  columns: { name: string; type: string }[];
  rows: unknown[][];
  truncated: boolean;
}

/** Access of one caller. */
export interface ToolCall {
  /**
   * Calls a declared route as the caller would over REST: same permissions, bounds and audit.
   * @throws ApiError as the route does
   */
  route: <O extends keyof RouteAnswers>(
    operation_id: O,
    input: RouteInput,
  ) => Promise<{ data: RouteAnswers[O]; meta: Readonly<Record<string, unknown>> }>;
  /** Runs SQL on the views of the caller's organization. */
  sql: (query: string, rowsMax: number) => Promise<SqlAnswer>;
  org_id: string;
  /** Milliseconds since the epoch. */
  now: number;
}

export interface Tool {
  name: string;
  title: string;
  description: string;
  /** Routes that the tool calls; it is listed for callers who may call them all. */
  routes: readonly (keyof RouteAnswers)[];
  /** Permissions that it needs besides those of its routes. */
  permissions?: readonly Permission[];
  writes: boolean;
  input: z.ZodObject;
  run: (input: unknown, call: ToolCall) => Promise<ToolAnswer>;
}

interface Declared<I extends z.ZodObject> extends Omit<Tool, 'input' | 'run' | 'writes'> {
  writes?: true;
  input: I;
  run: (input: z.output<I>, call: ToolCall) => Promise<ToolAnswer>;
}

/** Declares a tool. Its input is parsed with its schema before it runs. */
export function defineTool<I extends z.ZodObject>({ run, ...rest }: Declared<I>): Tool {
  return { ...rest, writes: rest.writes === true, run: (input, call) => run(input as z.output<I>, call) };
}

const CHARS_MAX = 100_000;
const CHARS_MIN = 500;

export const maxChars = (fallback: number) => z.int().min(CHARS_MIN).max(CHARS_MAX).default(fallback);
export const traceId = z.string().min(1).max(128);
export const limit = (fallback: number, max: number) => z.int().min(1).max(max).default(fallback);
export const time = z.string().max(40);

const RELATIVE = /^(\d{1,5})([mhdw])$/;
const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Returns a time as the API takes it: `24h` is that long before now, other texts stay as they are. */
export function timeOf(text: string, now: number): string {
  const found = RELATIVE.exec(text);
  const unit = UNITS[found?.[2] ?? ''];
  return found === null || unit === undefined ? text : new Date(now - Number(found[1]) * unit).toISOString();
}

type QueryValue = string | number | boolean | readonly string[] | null | undefined;

/** Returns a query of a route: values that are undefined are left out, and lists are comma-separated. */
export function queryOf(values: Readonly<Record<string, QueryValue>>): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      if (value === undefined || value === null) return [];
      return [[name, typeof value === 'object' ? [...value] : String(value)]];
    }),
  );
}

export const usd = (amount: number): string => `$${Number(amount.toPrecision(4))}`;
/** Returns arguments of a call as a client writes them. */
export const args = (values: Readonly<Record<string, unknown>>): string =>
  JSON.stringify(
    Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== null)),
  );
