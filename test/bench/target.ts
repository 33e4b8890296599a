// The service that a benchmark runs against: one of its own, in a temporary folder on free ports,
// or a running one by address. What it started is stopped by its pid, and its folder removed,
// whatever happens.
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { exitOf, stopChild } from '../../ops/launch/process/child.ts';
import { freePort } from '../../ops/launch/process/ports.ts';
import { loadSecrets } from '../../ops/launch/secrets.ts';
import type { LaneTarget } from './lane.ts';

const READY_MS_MAX = 120_000;
const POLL_MS = 100;
const STOP_MS_MAX = 60_000;
const DATABASE = 'millrace';
const ROOT = path.resolve(import.meta.dirname, '../..');
const packageShape = z.object({ scripts: z.object({ start: z.string() }) });

export interface Target {
  url: string;
  org: string;
  key: string;
  /** http://user:password@host:port/database; null when the store is out of reach. */
  clickhouseUrl: string | null;
  /** Pid of its first process; null for a service that was running already. */
  pid: number | null;
  dataDir: string | null;
  stop(): Promise<void>;
}

/** A service that was started here. */
export interface StartedTarget extends Target {
  dataDir: string;
  /** Seconds from the start of its process until it reported that it is ready. */
  ready_s: number;
}

/** Returns what a connection needs to talk to the service. */
export function laneTarget({ url, org, key }: Target): LaneTarget {
  const { hostname, port } = new URL(url);
  return {
    host: hostname,
    port: Number(port === '' ? 80 : port),
    headers: `X-Org-Api-Key: ${key}\r\nX-Org-Id: ${org}\r\nContent-Type: application/json\r\n`,
  };
}

/** A service's data folder and ports, which stay the same over restarts. */
export interface Place {
  dataDir: string;
  port: number;
  clickhousePort: number;
}

/** Creates an empty folder, which the caller removes, and finds free ports. */
export async function newPlace(): Promise<Place> {
  return {
    dataDir: mkdtempSync(path.join(tmpdir(), 'millrace-bench-')),
    port: await freePort(),
    clickhousePort: await freePort(),
  };
}

export interface StartFrom {
  /** Tree to start it from; this one by default. */
  root?: string;
  /** Starts by the command as typed, which looks for missing dependencies first. */
  bootstrap?: boolean;
}

/**
 * Starts a service in a folder of its own, which is removed with it, and waits until it is ready.
 * @throws Error as startAt does
 */
export async function startTarget(env: Record<string, string> = {}, from: StartFrom = {}): Promise<StartedTarget> {
  const place = await newPlace();
  const remove = (): void => {
    rmSync(place.dataDir, { recursive: true, force: true });
  };
  try {
    const target = await startAt(place, env, from);
    const stop = async (): Promise<void> => {
      await target.stop();
      remove();
    };
    return { ...target, stop };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Returns the file that `npm start` runs in a tree, which an earlier commit keeps elsewhere. */
function startEntry(root: string): string {
  const { scripts } = packageShape.parse(JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')));
  return scripts.start.split(' ').at(-1) ?? '';
}

/**
 * Starts a service at a place and waits until it is ready; its stop() keeps the data there.
 * @throws Error with its last log lines when it does not start
 */
export async function startAt(
  { dataDir, port, clickhousePort }: Place,
  env: Record<string, string> = {},
  { root = ROOT, bootstrap = false }: StartFrom = {},
): Promise<StartedTarget> {
  const logFile = path.join(dataDir, 'start.log');
  const log = openSync(logFile, 'a', 0o600);
  const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SERVICE_')));
  const began = performance.now();
  const entry = path.join(root, startEntry(root));
  const child = spawn(process.execPath, bootstrap ? [path.join(root, 'ops/bootstrap.mjs'), entry] : [entry], {
    cwd: root,
    stdio: ['ignore', log, log, 'ipc'],
    env: {
      ...own,
      SERVICE_DATA_DIR: dataDir,
      SERVICE_PORT: String(port),
      SERVICE_CLICKHOUSE_PORT: String(clickhousePort),
      SERVICE_LOG_LEVEL: 'warn',
      MILLRACE_SUPERVISED: '1',
      ...env,
    },
  });
  closeSync(log);
  const exited = exitOf(child);
  let ended = false;
  void exited.then(() => {
    ended = true;
  });
  const url = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    if (!ended) await stopChild(child, exited, STOP_MS_MAX);
  };
  const deadline = performance.now() + READY_MS_MAX;
  const isEnded = (): boolean => ended;
  while (!(await isReady(url))) {
    if (isEnded() || performance.now() > deadline) {
      const words = readFileSync(logFile, 'utf8').trim().split('\n').slice(-5).join('\n');
      await stop();
      throw new Error(`the service did not come up:\n${words}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const readySeconds = (performance.now() - began) / 1000;
  const secrets = loadSecrets(dataDir);
  return {
    url,
    org: 'org_local',
    key: secrets.api_key,
    clickhouseUrl: `http://app:${secrets.clickhouse_app_password}@127.0.0.1:${clickhousePort}/${DATABASE}`,
    pid: child.pid ?? null,
    dataDir,
    ready_s: readySeconds,
    stop,
  };
}

/** Returns a service that is running already. */
export function runningTarget(url: string, org: string, key: string, clickhouseUrl: string | null): Target {
  return {
    url: url.replace(/\/+$/, ''),
    org,
    key,
    clickhouseUrl,
    pid: null,
    dataDir: null,
    stop: () => Promise.resolve(),
  };
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}
