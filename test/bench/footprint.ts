// What the service takes when nobody uses it: memory and CPU of every process, and how its folder grows.
import { readdirSync, lstatSync } from 'node:fs';
import path from 'node:path';
import { cpuBetween, describeCpu, describeRss, processTree, rssOf } from './processes.ts';
import { mebibytes, type Section } from './report.ts';
import type { Target } from './target.ts';

const SETTLE_MS = 15_000;
const DAY_S = 86_400;
const BLOCK_BYTES = 512;

/** Bytes on disk below a folder. Files that vanish while it looks do not count. */
function diskBytes(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name);
    try {
      bytes += entry.isDirectory() ? diskBytes(full) : lstatSync(full).blocks * BLOCK_BYTES;
    } catch {
      continue;
    }
  }
  return bytes;
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** Watches an idle service. Takes one that this process started. */
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
  progress(`footprint: ${title}, ${String(seconds)} s without any request`);
  await pause(SETTLE_MS);
  const [before, diskBefore] = [processTree(pid), diskBytes(dataDir)];
  await pause(seconds * 1000);
  const [after, diskAfter] = [processTree(pid), diskBytes(dataDir)];
  const grownPerDay = ((diskAfter - diskBefore) / seconds) * DAY_S;
  const used = cpuBetween(before, after);
  const cpu = [...used.values()].reduce((sum, value) => sum + value, 0);
  return {
    title,
    rows: [
      { what: 'memory of all processes (RSS)', value: mebibytes(rssOf(after)), bar: '≤ 1 GiB', note: describeRss(after) },
      {
        what: 'disk growth, extrapolated',
        value: `${mebibytes(grownPerDay)}/day`,
        bar: '< 10 MB/day',
        note: `${mebibytes(diskAfter)} now, ${String(diskAfter - diskBefore)} B in ${String(seconds)} s`,
      },
      { what: 'CPU', value: `${((cpu / seconds) * 100).toFixed(1)} % of a core`, note: describeCpu(used) },
    ],
    data: {
      rss_bytes: rssOf(after),
      disk_bytes: diskAfter,
      disk_growth_bytes: diskAfter - diskBefore,
      disk_growth_bytes_per_day: grownPerDay,
      cpu_s: Object.fromEntries(used),
      seconds,
    },
  };
}
