// The idle service: memory and CPU of every process, and how its folder grows.
import { readdirSync, lstatSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuBetween, describeCpu, describeMemory, memoryOf, processTree } from './processes.ts';
import { atMost, mebibytes, single, thousands, type Section } from './report.ts';
import type { Target } from './target.ts';

const SETTLE_MS = 15_000;
const DAY_S = 86_400;
const IDLE_BYTES_MAX = 1024 ** 3;
const GROWTH_BYTES_PER_DAY_MAX = 10_000_000;

/** Returns the bytes in files below a folder. Files that vanish meanwhile do not count. */
function fileBytes(folder: string): number {
  let bytes = 0;
  for (const name of readdirSync(folder)) {
    const full = path.join(folder, name);
    const stat = lstatSync(full, { throwIfNoEntry: false });
    if (stat?.isDirectory() === true) bytes += fileBytes(full);
    else if (stat?.isFile() === true) bytes += stat.size;
  }
  return bytes;
}

/** Returns bytes by part: nats, clickhouse, logs. */
const bytesByFolder = (dataDir: string): Map<string, number> =>
  new Map(
    readdirSync(dataDir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => [name, fileBytes(path.join(dataDir, name))]),
  );

const total = (bytes: ReadonlyMap<string, number>): number =>
  [...bytes.values()].reduce((sum, value) => sum + value, 0);

/** Watches an idle service that this process started. */
export async function benchFootprint({
  target,
  seconds,
  progress,
  title,
}: {
  target: Target;
  seconds: number;
  progress: (line: string) => void;
  title: string;
}): Promise<Section> {
  const { pid, dataDir } = target;
  if (pid === null || dataDir === null) throw new Error('footprint takes a service of its own: leave --url out');
  progress(`footprint: ${title}, ${seconds} s without any request`);
  await pause(SETTLE_MS);
  const [before, diskBefore] = [processTree(pid), bytesByFolder(dataDir)];
  await pause(seconds * 1000);
  const [after, diskAfter] = [processTree(pid), bytesByFolder(dataDir)];
  const grown = [...diskAfter]
    .map(([folder, bytes]) => `${folder} ${thousands(bytes - (diskBefore.get(folder) ?? 0))}`)
    .join(', ');
  const grownPerDay = ((total(diskAfter) - total(diskBefore)) / seconds) * DAY_S;
  const used = cpuBetween(before, after);
  const cpu = [...used.values()].reduce((sum, value) => sum + value, 0);
  return {
    title,
    rows: [
      {
        what: 'memory of all processes',
        value: mebibytes(memoryOf(after)),
        bar: '≤ 1 GiB',
        note: describeMemory(after),
        measures: single(memoryOf(after), 'bytes', atMost(IDLE_BYTES_MAX)),
      },
      {
        what: 'disk growth, extrapolated',
        value: grownPerDay > 0 ? `${mebibytes(grownPerDay)}/day` : 'none',
        bar: '< 10 MB/day',
        note: `${mebibytes(total(diskAfter))} now; bytes in ${seconds} s: ${grown}`,
        measures: single(grownPerDay, 'bytes_per_day', atMost(GROWTH_BYTES_PER_DAY_MAX)),
      },
      {
        what: 'CPU',
        value: `${((cpu / seconds) * 100).toFixed(1)} % of a core`,
        note: describeCpu(used),
        measures: single(cpu / seconds, 'share'),
      },
    ],
    data: {
      memory_bytes: memoryOf(after),
      disk_bytes: Object.fromEntries(diskAfter),
      disk_growth_bytes: total(diskAfter) - total(diskBefore),
      disk_growth_bytes_per_day: grownPerDay,
      cpu_s: Object.fromEntries(used),
      seconds,
    },
  };
}
