// Runs the applications of test/support/compat_app.ts against a service, and reads what arrived.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { eventually } from '../../support/wait.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';

export type Data = Record<string, unknown>;

const APP = new URL('../../support/compat_app.ts', import.meta.url).pathname;

/** Runs an application and returns what it printed. */
export async function runApp(name: string, api: TestApi, more: Record<string, string> = {}): Promise<Data> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [APP, name], {
    env: {
      PATH: process.env['PATH'] ?? '',
      LANGFUSE_BASE_URL: api.url,
      LANGFUSE_BASEURL: api.url,
      LANGFUSE_PUBLIC_KEY: 'anything',
      LANGFUSE_SECRET_KEY: KEY,
      LANGSMITH_TRACING: 'true',
      LANGSMITH_ENDPOINT: `${api.url}/langsmith`,
      LANGSMITH_API_KEY: KEY,
      ...more,
    },
  });
  const line = stdout.trim().split('\n').at(-1) ?? '';
  if (!line.startsWith('{')) throw new Error(`the application ${name} printed no result:\n${stdout}\n${stderr}`);
  return { ...(JSON.parse(line) as Data), stderr };
}

/** Returns the spans of a trace once it holds `count` of them. */
export async function treeOf(api: TestApi, trace_id: unknown, count: number): Promise<Data[]> {
  let tree: Data[] = [];
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', `/v1/traces/${String(trace_id)}/tree`);
      tree = ((json?.['data'] as Data | undefined)?.['spans'] as Data[] | undefined) ?? [];
      return tree.length >= count;
    },
    { what: `${count} spans of the trace ${String(trace_id)}`, withinMs: 60_000 },
  );
  return tree;
}

/** Returns a trace as lists show it. */
export async function traceOf(api: TestApi, filter: string): Promise<Data | undefined> {
  let found: Data | undefined;
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', `/v1/traces?${filter}`);
      [found] = (json?.['data'] as Data[] | undefined) ?? [];
      return found !== undefined;
    },
    { what: `a trace with ${filter}` },
  );
  return found;
}

export const named = (tree: readonly Data[], name: string): Data => tree.find((span) => span['name'] === name) ?? {};
