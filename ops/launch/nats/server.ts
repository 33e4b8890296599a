// Starts nats-server as a child process: writes its configuration, starts it, and waits until it
// answers. It does not restart the server. nats-server cannot detect that its parent has died, so a
// shell beside it holds the other end of a pipe and stops the server when the pipe breaks.
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
/**
 * Time that the server outlives a parent that died, so that other children can land their buffered
 * rows.
 */
const ORPHAN_GRACE_SECONDS = 3;
/**
 * Script that becomes nats-server ($1 binary, $2 configuration). A subshell stays behind and reads
 * a pipe from the parent: a line means that nats-server has ended, the end of the pipe without a
 * line means that the parent has died.
 */
const GUARDED = `( read -r line <&3 || { sleep ${ORPHAN_GRACE_SECONDS}; kill -TERM $$; } ) & exec "$1" -c "$2" 3<&-`;

export interface NatsOptions {
  /** Path of nats-server. */
  binary: string;
  /**
   * Folder of the server's own files. The server does not lock it, so the caller must hold a lock.
   */
  dataDir: string;
  /** 0 for a free port. */
  port: number;
  /** 'always', or a duration such as 1s. */
  sync: string;
  token: string;
  logFile: string;
  /** Maximum bytes of streams on disk; if absent, only the streams' own bounds apply. */
  storeMaxBytes?: number;
  /** Absent for a single server. */
  cluster?: NatsClusterNode;
}

/** Running nats-server. */
export interface NatsServer {
  /** nats://token@127.0.0.1:port, as SERVICE_NATS_URL accepts it. */
  url: string;
  port: number;
  pid: number;
  child: ChildProcess;
  stop(): Promise<void>;
  exited: Promise<Exit>;
}

/**
 * Starts nats-server with JetStream and waits until it listens.
 * @throws Error with one line that says why the server ended first, or that it did not listen
 * within 20 s
 */
export async function startNats(options: NatsOptions): Promise<NatsServer> {
  const dataDir = path.resolve(options.dataDir);
  const port = options.port === 0 ? await freePort() : options.port;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  mkdirSync(path.dirname(options.logFile), { recursive: true });
  // After a kill -9 the old file remains and would name a former port.
  for (const name of readdirSync(dataDir)) if (name.endsWith('.ports')) rmSync(path.join(dataDir, name));
  const config = path.join(dataDir, 'nats.conf');
  writeFileSync(config, natsConfigText({ ...options, dataDir, port }), { mode: 0o600 });
  const errors = openSync(`${options.logFile}.stderr`, 'w', 0o600);
  const child = spawn('/bin/sh', ['-c', GUARDED, 'nats', options.binary, config], {
    // The child has a process group of its own, so that Ctrl-C in the terminal reaches only the
    // supervisor, which stops processes in order.
    detached: true,
    stdio: ['ignore', errors, errors, 'pipe'],
    // Under a backlog the block caches would grow past half a gigabyte. They are caches, so the
    // garbage collector may free them.
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

/** Returns the reason why the server ended as one line, from the end of its log. */
function whyFrom(logFile: string): string {
  const read = (file: string): string[] => {
    try {
      return readFileSync(file, 'utf8').slice(-4000).trim().split('\n');
    } catch {
      return [];
    }
  };
  const lines = [...read(`${logFile}.stderr`), ...read(logFile)].filter((line) => line !== '');
  const line = lines.findLast((text) => /\[(FTL|ERR)\]|error/i.test(text)) ?? lines.at(-1) ?? 'it wrote no reason';
  return `${line.replace(/^\[\d+\] \S+ \S+ /, '').slice(0, 300)} (see ${logFile})`;
}
