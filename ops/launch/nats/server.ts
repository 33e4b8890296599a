// nats-server as a child process: writes its configuration, starts it, waits until it answers. It does not restart it.
// It cannot know that its parent is gone, so a shell beside it holds the other end of a pipe, and ends it when that pipe breaks.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Writable } from 'node:stream';
import { type Exit, exitOf, hasEnded, stopChild } from '../process/child.ts';
import { freePort } from '../process/ports.ts';
import { type NatsClusterNode, natsConfigText } from './config.ts';

const READY_MS_MAX = 20_000;
const PROBE_EVERY_MS = 5;
const STOP_MS_MAX = 10_000;
/** How long it outlives a parent that vanished, so that the other children can land what they hold. */
const ORPHAN_GRACE_SECONDS = 3;
/**
 * Becomes nats-server ($1 binary, $2 configuration); a part of it stays behind and reads a pipe from the parent: a line says that
 * nats-server is gone already, an end without a line that the parent is.
 */
const GUARDED = `( read -r line <&3 || { sleep ${ORPHAN_GRACE_SECONDS}; kill -TERM $$; } ) & exec "$1" -c "$2" 3<&-`;

export interface NatsOptions {
  /** Path of nats-server. */
  binary: string;
  /** Folder of its own files. It takes no lock on it: the caller must hold one. */
  dataDir: string;
  /** 0: a free one. */
  port: number;
  /** 'always', or a duration such as 1s. */
  sync: string;
  token: string;
  logFile: string;
  /** Most bytes of streams on disk; unset: as many as their own bounds let them have. */
  storeMaxBytes?: number;
  /** Unset: a server alone. */
  cluster?: NatsClusterNode;
}

/** A running nats-server. */
export interface NatsServer {
  /** nats://token@127.0.0.1:port: what SERVICE_NATS_URL takes. */
  url: string;
  port: number;
  pid: number;
  child: ChildProcess;
  stop(): Promise<void>;
  exited: Promise<Exit>;
}

/**
 * Starts nats-server with JetStream and waits until it listens.
 * @throws Error with one line saying why, when it ends first or does not listen within 20 s.
 */
export async function startNats(options: NatsOptions): Promise<NatsServer> {
  const dataDir = path.resolve(options.dataDir);
  const port = options.port === 0 ? await freePort() : options.port;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  mkdirSync(path.dirname(options.logFile), { recursive: true });
  // After a kill -9 the old file stays, and would name a port of the past.
  for (const name of readdirSync(dataDir)) if (name.endsWith('.ports')) rmSync(path.join(dataDir, name));
  const config = path.join(dataDir, 'nats.conf');
  writeFileSync(config, natsConfigText({ ...options, dataDir, port }), { mode: 0o600 });
  const errors = openSync(`${options.logFile}.stderr`, 'w', 0o600);
  const child = spawn('/bin/sh', ['-c', GUARDED, 'nats', options.binary, config], {
    // A group of its own: Ctrl-C in the terminal must reach the supervisor alone, which stops things in order.
    detached: true,
    stdio: ['ignore', errors, errors, 'pipe'],
    // Under a backlog its block caches would grow past half a gigabyte; they are caches, so the collector may take them.
    env: { PATH: process.env['PATH'], NATS_TOKEN: options.token, GOMEMLIMIT: '256MiB' },
  });
  closeSync(errors);
  const guard = child.stdio[3] as Writable;
  guard.on('error', () => undefined);
  const exited = exitOf(child).then((exit) => {
    guard.end('gone\n');
    return exit;
  });
  await ready(child, dataDir, options.logFile);
  return {
    url: `nats://${options.token}@127.0.0.1:${port}`,
    port,
    pid: child.pid ?? 0,
    child,
    exited,
    stop: () => stopChild(child, exited, STOP_MS_MAX),
  };
}

async function ready(child: ChildProcess, dataDir: string, logFile: string): Promise<void> {
  const deadline = performance.now() + READY_MS_MAX;
  while (!hasEnded(child) && performance.now() < deadline) {
    if (readdirSync(dataDir).some((name) => name.endsWith(`_${String(child.pid)}.ports`))) return;
    await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
  }
  child.kill('SIGKILL');
  throw new Error(`nats-server did not start: ${whyFrom(logFile)}`);
}

/** Its last word on why it ended: one line. */
function whyFrom(logFile: string): string {
  const read = (file: string): string[] => {
    try {
      return readFileSync(file, 'utf8').slice(-4000).trim().split('\n');
    } catch {
      return [];
    }
  };
  const lines = [...read(`${logFile}.stderr`), ...read(logFile)].filter((line) => line !== '');
  const line = lines.findLast((text) => /\[(FTL|ERR)\]|error/i.test(text)) ?? lines.at(-1) ?? 'it ended without a word';
  return `${line.replace(/^\[\d+\] \S+ \S+ /, '').slice(0, 300)} (see ${logFile})`;
}
