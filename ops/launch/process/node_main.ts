// Runs one of the service's own Node processes (API, pipeline) as a child: its output goes to its
// log file, and it reports over its channel when it is ready. The child has the file open itself,
// so it survives its supervisor without losing output.
import { fork } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { exitOf, stopChild } from './child.ts';
import type { Running } from './supervised_process.ts';
import { lowerPriority } from './priority.ts';

const readyShape = z.object({ ready: z.literal(true), port: z.number().int().optional() });
/** Message of a child whose start takes long, sent repeatedly. */
const startingShape = z.object({ starting: z.literal(true) });

export interface NodeMainOptions {
  name: string;
  /** Path of the TypeScript file. */
  entry: string;
  env: Record<string, string | undefined>;
  logFile: string;
  /** When it aborts, the child is terminated even if it is not ready yet. */
  signal: AbortSignal;
  /**
   * Maximum silence before the child is ready, milliseconds. A child that keeps reporting that it
   * is starting may take longer.
   */
  readyMsMax: number;
  stopMsMax: number;
  /** Nice value, see lowerPriority; 0 if absent. */
  nice?: number;
}

/** Node whose V8 has these flags: another one ends at the start if it does not know one. */
const FLAGS_OF_NODE = '26.';

/**
 * Batches of events live for a few hundred milliseconds, and pass through much memory outside of
 * V8's heap: messages of the log and blocks of rows.
 * - With the default young generation (16 MB) most batches were copied to the old generation before
 *   they died.
 * - By default 64 MB of new buffers make V8 mark its whole heap, once a second under load, although
 *   collections of the young generation free them. Counted with the heap, they make it do so less
 *   often; the factor bounds how far they may grow from one time to the next.
 * - Two threads that collect the young generation together spend more CPU time than one, and wait
 *   for each other where other processes need the cores.
 */
export const NODE_FLAGS: readonly string[] = [
  '--max-semi-space-size=32',
  ...(process.versions.node.startsWith(FLAGS_OF_NODE)
    ? [
        '--external-memory-accounted-in-global-limit',
        '--external-memory-max-growing-factor=1.1',
        '--no-parallel-scavenge',
      ]
    : []),
];

/** Node process that is ready; `port` is the one that it reported, or null. */
export interface RunningMain extends Running {
  port: number | null;
}

/**
 * Starts the process and waits for {ready: true}. Each {starting: true} before that restarts the
 * timeout.
 * @throws Error with one line from the process's own output when it ends first
 */
export async function startNodeMain(options: NodeMainOptions): Promise<RunningMain> {
  const { name, entry, env, logFile, signal, readyMsMax, stopMsMax } = options;
  const log = openSync(logFile, 'a', 0o600);
  const from = fstatSync(log).size;
  const child = fork(entry, [], {
    execPath: process.execPath,
    execArgv: [...NODE_FLAGS],
    // The child has a process group of its own, so that Ctrl-C in the terminal reaches only the
    // supervisor, which stops processes in order.
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
        // A cleared timer would run again after a refresh.
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

/**
 * Returns the last line of a log that says why a process ended; a JSON record becomes its message.
 */
export function lastErrorLine(logFile: string, from: number): string {
  const lines = readFileSync(logFile)
    .subarray(from)
    .toString('utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  // After a stack trace of Node itself, the line of the error says why; otherwise the last line
  // does.
  const crash = lines.at(-1)?.startsWith('Node.js v') ?? false;
  const line =
    (crash ? lines.findLast((text) => /^(\w*Error\b|Uncaught)/.test(text)) : lines.at(-1)) ?? 'it wrote no reason';
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
