// The command `millrace` from its tarball against a real service, for the tests of the command line.
// Importing this module starts the service for the test file and stops it after it.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { installedCli } from '../../support/sdk_package.ts';
import { removeDir } from '../../support/temp.ts';
import { say, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import type { TestApi } from '../api/an_api.ts';

export type Data = Record<string, unknown>;

export let service: TestService;
export let api: TestApi;
export let tenant: Tenant;
let upstream: TestUpstream;
let binary: string;
let folder: string;

beforeAll(async () => {
  [upstream, binary] = await Promise.all([startUpstream(), installedCli()]);
  folder = path.resolve(binary, '../../..');
  upstream.behave(say('Paris.'));
  service = await TestService.start({
    api: { llmUrl: upstream.url },
    worker: { SERVICE_TRACE_GRACE_MS: '50', SERVICE_LLM_BASE_URL: upstream.url },
  });
  api = await service.startApi();
}, 240_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
  removeDir(path.dirname(folder));
});
beforeEach(async () => {
  tenant = await aTenant({ api, database: service.database });
});

export interface Run {
  code: number | null;
  out: string;
  err: string;
  /** Records printed as NDJSON. */
  records: Data[];
}

const environment = (more: Record<string, string> = {}): Record<string, string> => ({
  PATH: `${path.dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
  HOME: folder,
  MILLRACE_URL: api.url,
  MILLRACE_API_KEY: tenant.key['X-Org-Api-Key'] ?? '',
  ...more,
});

/** Runs the command in its folder until it ends. */
export function millrace(args: readonly string[], more: Record<string, string> = {}, cwd = folder): Promise<Run> {
  return new Promise((resolve) => {
    const child = execFile(binary, args, { env: environment(more), cwd, maxBuffer: 64 * 1024 ** 2 }, (_, out, err) => {
      const lines = out.split('\n').filter((line) => line.startsWith('{'));
      const records = lines.flatMap((line) => {
        try {
          return [JSON.parse(line) as Data];
        } catch {
          return [];
        }
      });
      resolve({ code: child.exitCode, out, err, records });
    });
  });
}

/** Runs the command on a terminal of 80 columns, made by the command `script`. Resolves with what the terminal showed. */
export async function onTerminal(args: readonly string[]): Promise<string> {
  const line = [`stty cols 80 rows 40; exec ${binary}`, ...args].join(' ');
  const env = environment({ TERM: 'xterm' });
  const { stdout } = await promisify(execFile)('script', ['-qec', line, '/dev/null'], { env, cwd: folder });
  return stdout.replaceAll('\r', '');
}

/** Starts the command; it runs until it is ended. */
export const startMillrace = (args: readonly string[]): ChildProcess =>
  spawn(binary, args, { env: environment(), cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });

/** Returns a new folder for files of a test. */
export const newFolder = (): string => mkdtempSync(path.join(folder, 'files-'));

/** Writes a file of JSON lines and returns its path. */
export function fileOf(lines: readonly unknown[]): string {
  const file = path.join(newFolder(), 'lines.jsonl');
  writeFileSync(file, lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''));
  return file;
}

/** An event of the format chatcompletion. */
export const modelCall = (more: Data = {}): Data => ({
  request: { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Capital of France?' }] },
  response: {
    choices: [{ index: 0, message: { role: 'assistant', content: 'Paris it is' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
  },
  duration_ms: 400,
  outcome: 'success',
  ...more,
});
