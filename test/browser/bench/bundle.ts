// Measures what a start of the service pays for the portal: the files that a browser loads, the time of
// a build, and the memory of all processes before the first request.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { buildPortal } from '../../../ops/launch/portal/build.ts';
import { figureRow, kilobytes, timesRow } from '../../bench/portal_rows.ts';
import { describeMemory, memoryOf, processTree } from '../../bench/processes.ts';
import { mebibytes, type ReportRow } from '../../bench/report.ts';
import type { Target } from '../../bench/target.ts';

const BUILD = path.resolve(import.meta.dirname, '../../../ops/launch/portal/build_main.ts');
const BUILD_MS_MAX = 3000;
/** Time in which what a start leaves running comes to rest. */
const SETTLE_MS = 15_000;
const IDLE_BYTES_MAX = 1024 ** 3;
const manifestShape = z.record(
  z.string(),
  z.looseObject({ file: z.string(), imports: z.array(z.string()).optional() }),
);
/** Kilobytes of compressed scripts that a screen may need, with those of the frame. */
const SCREENS: readonly (readonly [what: string, sources: readonly string[], most: number])[] = [
  ['frame', [], 125],
  ['Traces', ['screens/traces/traces_screen.tsx'], 155],
  ['a trace', ['screens/trace/trace_screen.tsx'], 170],
  ['Costs', ['screens/costs/costs_screen.tsx'], 170],
];

/** Sizes of the files that a browser loads, of a build of this tree. */
export async function sizes(): Promise<ReportRow[]> {
  const folder = await buildPortal();
  const manifest = manifestShape.parse(JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8')));
  const needed = (name: string, seen = new Set<string>()): Set<string> => {
    if (!seen.has(name)) for (const one of manifest[name]?.imports ?? []) needed(one, seen.add(name));
    return seen.add(name);
  };
  const sizeOf = (file: string): number => statSync(path.join(folder, file)).size;
  const row = (what: string, bytes: number, most: number): ReportRow =>
    figureRow(what, { value: bytes, unit: 'bytes', words: kilobytes(bytes), most: most * 1000, bar: `≤ ${most} kB` });
  const assets = readdirSync(path.join(folder, 'assets'));
  const all = (end: string): number =>
    assets.filter((file) => file.endsWith(end)).reduce((sum, file) => sum + sizeOf(`assets/${file}`), 0);
  return [
    ...SCREENS.filter(([, sources]) => sources.every((source) => source in manifest)).map(([what, sources, most]) => {
      const names = ['main.tsx', ...sources].flatMap((source) => [...needed(source)]);
      const chunks = new Set(names.map((name) => manifest[name]?.file ?? ''));
      const bytes = [...chunks].reduce((sum, file) => sum + sizeOf(`${file}.gz`), 0);
      return row(`scripts of ${what}, gzip`, bytes, most);
    }),
    row('all scripts, gzip', all('.js.gz'), 480),
    row('styles, gzip', all('.css.gz'), 20),
    row('fonts', all('.woff2'), 90),
  ];
}

/** The time of a build in a process of its own, into an empty folder. */
export async function buildTime(runs: number): Promise<ReportRow[]> {
  const times: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const builds = await mkdtemp(path.join(tmpdir(), 'millrace-bench-portal-'));
    const began = performance.now();
    try {
      await promisify(execFile)(process.execPath, [BUILD, builds]);
      times.push(performance.now() - began);
    } finally {
      rmSync(builds, { recursive: true, force: true });
    }
  }
  return [timesRow('build of the portal, in a process of its own', times, { p50: BUILD_MS_MAX })];
}

/** The memory of all processes of a service that has started and has no requests. */
export async function idleMemory({ pid }: Target): Promise<ReportRow[]> {
  if (pid === null) throw new Error('the memory of a service that runs elsewhere is not known');
  await pause(SETTLE_MS);
  const tree = processTree(pid);
  const bytes = memoryOf(tree);
  const words = mebibytes(bytes);
  const note = describeMemory(tree);
  return [
    figureRow('memory of the idle service', {
      value: bytes,
      unit: 'bytes',
      words,
      most: IDLE_BYTES_MAX,
      bar: '≤ 1 GiB',
      note,
    }),
  ];
}
