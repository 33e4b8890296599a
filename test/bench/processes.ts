// CPU time and memory of a process and all its descendants, by part of the service.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

export interface ProcessUse {
  pid: number;
  part: string;
  /** CPU seconds since its start. */
  cpu_s: number;
  rss_bytes: number;
  /**
   * Proportional share of the memory: pages mapped by several processes (the program itself, its
   * libraries) count once for all of them, unlike in RSS. Exact for the whole while no other
   * service runs the same programs on the machine; RSS where the system does not report it.
   */
  share_bytes: number;
}

/** Linux reports CPU time in hundredths of a second, whatever the kernel's own tick. */
const TICKS_PER_SECOND = 100;

interface Seen {
  pid: number;
  parent: number;
  cpu_s: number;
  rss_bytes: number;
  command: string;
}

/** Reads the times of a process or a thread; null if it has ended. */
function timesOf(folder: string): { comm: string; parent: number; cpu_s: number } | null {
  try {
    const stat = readFileSync(`${folder}/stat`, 'utf8');
    // The command is in parentheses and may contain spaces: fields count from after it.
    const end = stat.lastIndexOf(')');
    const fields = stat
      .slice(end + 2)
      .split(' ')
      .map(Number);
    return {
      comm: stat.slice(stat.indexOf('(') + 1, end),
      parent: fields[1] ?? 0,
      cpu_s: ((fields[11] ?? 0) + (fields[12] ?? 0)) / TICKS_PER_SECOND,
    };
  } catch {
    return null;
  }
}

function fromProc(pid: number): Seen | null {
  try {
    const times = timesOf(`/proc/${pid}`);
    if (times === null) return null;
    const rss = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return {
      pid,
      parent: times.parent,
      cpu_s: times.cpu_s,
      rss_bytes: Number(rss) * 1024,
      command,
    };
  } catch {
    // It ended between the listing and the read.
    return null;
  }
}

function fromPs(): Seen[] {
  const seconds = (text: string): number => text.split(/[-:]/).reduce((sum, part) => sum * 60 + Number(part), 0);
  return execFileSync('ps', ['-axo', 'pid=,ppid=,time=,rss=,command='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, pid, parent, time, rss, command]) => ({
      pid: Number(pid),
      parent: Number(parent),
      cpu_s: seconds(time ?? '0'),
      rss_bytes: Number(rss) * 1024,
      command: command ?? '',
    }));
}

function all(): Seen[] {
  if (process.platform !== 'linux') return fromPs();
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => fromProc(Number(name)))
    .filter((seen) => seen !== null);
}

/** Returns the proportional set size; null where the system does not report it. */
function shareOf(pid: number): number | null {
  if (process.platform !== 'linux') return null;
  try {
    const kilobytes = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  } catch {
    return null;
  }
}

const PARTS: readonly [RegExp, string][] = [
  // The shell that ends nats-server when its parent is gone: it is alone for a moment when
  // nats-server is killed.
  [/^\S*sh -c /, 'other'],
  [/api\/main\.ts/, 'api'],
  [/pipeline\/main\.ts/, 'worker'],
  [/clickhouse\/launcher\.ts/, 'clickhouse'],
  [/nats/, 'nats-server'],
  [/ops\/start\.ts/, 'supervisor'],
];

/** Returns what a process and all its descendants use now. */
export function processTree(root: number): ProcessUse[] {
  const seen = all();
  const wanted = new Set([root]);
  for (let size = 0; size !== wanted.size;) {
    size = wanted.size;
    for (const { pid, parent } of seen) if (wanted.has(parent)) wanted.add(pid);
  }
  return seen
    .filter(({ pid }) => wanted.has(pid))
    .map(({ pid, cpu_s, rss_bytes, command }) => ({
      pid,
      cpu_s,
      rss_bytes,
      share_bytes: shareOf(pid) ?? rss_bytes,
      part: PARTS.find(([pattern]) => pattern.test(command))?.[1] ?? 'other',
    }));
}

export interface ThreadUse {
  part: string;
  /** Name of the threads that it sums up. */
  thread: string;
  cpu_s: number;
}

/** Name of a thread without its number. */
const threadName = (comm: string): string =>
  comm
    .trim()
    .replace(/^node-/, '')
    .replace(/[-_ ]?\d+$/, '') || 'unnamed';

/** Returns the CPU time since their start of the threads that run now; on Linux alone. */
export function threadsOf(root: number): ThreadUse[] {
  if (process.platform !== 'linux') return processTree(root).map(({ part, cpu_s }) => ({ part, thread: 'all', cpu_s }));
  return processTree(root).flatMap(({ pid, part, cpu_s }) => {
    let rest = cpu_s;
    const running = taskIds(pid).flatMap((task): ThreadUse[] => {
      const seen = timesOf(`/proc/${pid}/task/${task}`);
      if (seen === null) return [];
      rest -= seen.cpu_s;
      return [{ part, thread: threadName(seen.comm), cpu_s: seen.cpu_s }];
    });
    return [...running, { part, thread: 'ended threads', cpu_s: Math.max(0, rest) }];
  });
}

function taskIds(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** Returns CPU seconds by part and thread between two measurements. */
export function threadsBetween(before: readonly ThreadUse[], after: readonly ThreadUse[]): ThreadUse[] {
  const key = ({ part, thread }: ThreadUse): string => `${part} ${thread}`;
  const sums = new Map<string, ThreadUse>();
  const add = (use: ThreadUse, sign: 1 | -1): void => {
    const sum = sums.get(key(use)) ?? { ...use, cpu_s: 0 };
    sums.set(key(use), { ...sum, cpu_s: sum.cpu_s + sign * use.cpu_s });
  };
  for (const use of after) add(use, 1);
  for (const use of before) add(use, -1);
  return [...sums.values()].filter(({ cpu_s }) => cpu_s > 0);
}

/** Memory of all of them together (RSS), as process listings show it. */
export const memoryOf = (tree: readonly ProcessUse[]): number =>
  tree.reduce((sum, { rss_bytes }) => sum + rss_bytes, 0);

/** Returns CPU seconds by part between two measurements. */
export function cpuBetween(before: readonly ProcessUse[], after: readonly ProcessUse[]): Map<string, number> {
  const start = new Map(before.map(({ pid, cpu_s }) => [pid, cpu_s]));
  const used = new Map<string, number>();
  for (const { pid, part, cpu_s } of after) used.set(part, (used.get(part) ?? 0) + cpu_s - (start.get(pid) ?? 0));
  return used;
}

export const describeCpu = (used: ReadonlyMap<string, number>): string =>
  [...used]
    .filter(([, seconds]) => seconds >= 0.1)
    .sort((a, b) => b[1] - a[1])
    .map(([part, seconds]) => `${part} ${seconds.toFixed(1)}`)
    .join(', ');

export function describeMemory(tree: readonly ProcessUse[]): string {
  const parts = new Map<string, number>();
  for (const { part, rss_bytes } of tree) parts.set(part, (parts.get(part) ?? 0) + rss_bytes);
  const mebi = (bytes: number): string => String(Math.round(bytes / 1024 ** 2));
  const each = [...parts].sort((a, b) => b[1] - a[1]).map(([part, bytes]) => `${part} ${mebi(bytes)}`);
  const share = tree.reduce((sum, { share_bytes }) => sum + share_bytes, 0);
  return `${each.join(', ')}; ${mebi(share)} with pages that processes share counted once`;
}
