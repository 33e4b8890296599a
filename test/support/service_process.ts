// The whole service as `npm start` starts it, with its own data folder and free ports. The caller
// ends with stopServices, which stops every service and removes every folder.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { type Exit, describeExit, exitOf, hasEnded } from '../../ops/launch/process/child.ts';
import { type Secrets, loadSecrets, readAddresses } from '../../ops/launch/secrets.ts';
import { removeDir, tempDir } from './temp.ts';
import { eventually } from './wait.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const READY_MS_MAX = 180_000;

export type ChildName = 'api' | 'pipeline' | 'nats' | 'clickhouse';

/** A run of the start command: its output and its exit. */
export interface Started {
  child: ChildProcess;
  exited: Promise<Exit>;
  stdout(): string;
  stderr(): string;
}

/** A service that is ready. */
export interface TestService extends Started {
  dataDir: string;
  baseUrl: string;
  orgId: string;
  secrets: Secrets;
  /** Returns the process id of a running child. */
  pidOf(name: ChildName): number;
  /** Sends SIGTERM and resolves once the service has drained and exited. */
  stop(): Promise<Exit>;
}

export interface ServiceOptions {
  /** Default: a new folder. */
  dataDir?: string;
  /** Settings in addition to ports and data folder. */
  env?: Record<string, string>;
  /** Command line. Default: ops/launch/start.ts on this Node. */
  command?: readonly string[];
}

const started = new Set<Started>();
const folders = new Set<string>();

/** Stops every service that this process started and removes their folders. */
export async function stopServices(): Promise<void> {
  for (const { child, exited } of started) {
    child.kill('SIGTERM');
    await exited;
  }
  for (const folder of folders) removeDir(folder);
}

/** Creates a data folder that is removed when the test file ends. */
export function serviceDir(): string {
  const folder = tempDir('service');
  folders.add(folder);
  return path.join(folder, 'data');
}

/** Runs the start command without waiting for it. */
export function runStart({
  dataDir = serviceDir(),
  env = {},
  command = ['ops/launch/start.ts'],
}: ServiceOptions = {}): Started {
  // The service under test must not inherit settings from the environment of the test run.
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(SERVICE_|MILLRACE_|npm_|VITEST|NODE_ENV$)/i.test(name)),
  );
  const child = spawn(process.execPath, command, {
    cwd: ROOT,
    // The service exits when the IPC channel closes, for example because this process was killed.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { ...clean, SERVICE_PORT: '0', SERVICE_CLICKHOUSE_PORT: '0', SERVICE_DATA_DIR: dataDir, ...env },
  });
  const collect = (name: 'stdout' | 'stderr'): (() => string) => {
    let text = '';
    child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    return () => text;
  };
  const run = { child, exited: exitOf(child), stdout: collect('stdout'), stderr: collect('stderr') };
  started.add(run);
  void run.exited.then(() => started.delete(run));
  return run;
}

/**
 * Starts the service and waits until it is ready.
 * @throws Error with all its output if it exits first
 */
export async function startService(options: ServiceOptions = {}): Promise<TestService> {
  const dataDir = options.dataDir ?? serviceDir();
  const run = runStart({ ...options, dataDir });
  await eventually(() => hasEnded(run.child) || run.stdout().includes('Millrace is ready'), {
    withinMs: READY_MS_MAX,
    what: 'a ready service',
  });
  if (hasEnded(run.child))
    throw new Error(`the service ended (${describeExit(await run.exited)}):\n${run.stdout()}${run.stderr()}`);
  const { base_url, org_id } = readAddresses(dataDir);
  return {
    ...run,
    dataDir,
    baseUrl: base_url,
    orgId: org_id,
    secrets: loadSecrets(dataDir),
    pidOf: (name) => pidIn(dataDir, name),
    async stop() {
      run.child.kill('SIGTERM');
      return run.exited;
    },
  };
}

function pidIn(dataDir: string, name: ChildName): number {
  return z
    .object({ pid: z.number() })
    .parse(JSON.parse(readFileSync(path.join(dataDir, 'run', `${name}.pid.json`), 'utf8'))).pid;
}
