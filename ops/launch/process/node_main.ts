// One of the service's own Node processes (API, pipeline) as a child: its output goes to its log file, its channel says when it is ready.
// The file is opened for appending by the child itself, so a child outlives its supervisor without losing what it writes.
import { fork } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { exitOf, stopChild } from './child.ts';
import type { Running } from './supervised_process.ts';
import { lowerPriority } from './priority.ts';

const readyShape = z.object({ ready: z.literal(true), port: z.number().int().optional() });
/** A child whose start takes long says so again and again. */
const startingShape = z.object({ starting: z.literal(true) });

export interface NodeMainOptions {
  name: string;
  /** The TypeScript file. */
  entry: string;
  env: Record<string, string | undefined>;
  logFile: string;
  /** Aborted: end it although it is not ready yet. */
  signal: AbortSignal;
  /** So long it may say nothing before it is ready; however long it says that it is starting. */
  readyMsMax: number;
  stopMsMax: number;
  /** See lowerPriority; unset: 0. */
  nice?: number;
}

/** Batches of events live for some hundred milliseconds: with the default young generation (16 MB) most were copied to the old one before they died. */
const NODE_FLAGS = ['--max-semi-space-size=32'];

/** A Node process that said that it is ready; port is what it listens on, where it told. */
export interface RunningMain extends Running {
  port: number | null;
}

/**
 * Starts it and waits until it says {ready: true}; each {starting: true} before that gives it more time.
 * @throws Error with one line: why it ended first, from its own output
 */
export async function startNodeMain(options: NodeMainOptions): Promise<RunningMain> {
  const { name, entry, env, logFile, signal, readyMsMax, stopMsMax } = options;
  const log = openSync(logFile, 'a', 0o600);
  const from = fstatSync(log).size;
  const child = fork(entry, [], {
    execPath: process.execPath,
    execArgv: NODE_FLAGS,
    // A group of its own: Ctrl-C in the terminal must reach the supervisor alone, which stops things in order.
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
    env: { ...env, MILLRACE_SUPERVISED: '1' },
  });
  closeSync(log);
  lowerPriority(child.pid, options.nice ?? 0);
  const exited = exitOf(child);
  signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
  const late = Promise.withResolvers<'late'>();
  const timer = setTimeout(() => {
    late.resolve('late');
  }, readyMsMax);
  const ready = new Promise<z.infer<typeof readyShape>>((resolve) => {
    child.on('message', (message) => {
      const parsed = readyShape.safeParse(message);
      if (parsed.success) {
        // A timer that was cleared would run again after a refresh.
        clearTimeout(timer);
        resolve(parsed.data);
      } else if (startingShape.safeParse(message).success) timer.refresh();
    });
  });
  const first = await Promise.race([ready, exited.then(() => 'ended' as const), late.promise]);
  clearTimeout(timer);
  if (first === 'late') {
    child.kill('SIGKILL');
    throw new Error(`${name} was not ready and said nothing for ${readyMsMax / 1000} s (see ${logFile})`);
  }
  if (first === 'ended') throw new Error(`${name} did not start: ${lastErrorLine(logFile, from)} (see ${logFile})`);
  return {
    pid: child.pid ?? 0,
    port: first.port ?? null,
    exited,
    stop: () => stopChild(child, exited, stopMsMax),
    kill: () => child.kill('SIGKILL'),
  };
}

const recordShape = z.object({ msg: z.string().default(''), err: z.object({ message: z.string() }).optional() });

/** The last thing that a process said about why it ended: one line of its log, read as a record where it is one. */
export function lastErrorLine(logFile: string, from: number): string {
  const lines = readFileSync(logFile)
    .subarray(from)
    .toString('utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  // Where Node itself printed a stack trace, the error's own line says why; else the last line does.
  const crash = lines.at(-1)?.startsWith('Node.js v') ?? false;
  const line =
    (crash ? lines.findLast((text) => /^(\w*Error\b|Uncaught)/.test(text)) : lines.at(-1)) ?? 'it ended without a word';
  try {
    const { msg, err } = recordShape.parse(JSON.parse(line));
    return [msg, err?.message]
      .filter((part) => part !== undefined && part !== '')
      .join(': ')
      .slice(0, 400);
  } catch {
    return line.slice(0, 400);
  }
}
