// `npm run bench -- portal`: the web portal in a headless Chromium against its budgets. Fills a
// service by ingest, drives pages by the browser's protocol, and returns one table. Each part is
// attempted by itself: one that fails becomes a row that says so. The browser ends with the run.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { buildPortal } from '../../../ops/launch/portal/build.ts';
import { failedRow, figureRow, kilobytes, type PortalRun } from '../../bench/portal_rows.ts';
import type { ReportRow, Section } from '../../bench/report.ts';
import { sendData } from './data.ts';
import { find, heapAfter, heapGrowth, largePrompt, motions, selectSpan } from './inside.ts';
import { ingestCost } from './ingest_cost.ts';
import { filter, liveTail, search } from './lists.ts';
import { byLink, coldList, fromList, home, type Measuring, nextTrace } from './opens.ts';
import { openSession } from './session.ts';

const MOVED_SPANS = 10_000;
const manifestShape = z.record(
  z.string(),
  z.looseObject({ file: z.string(), imports: z.array(z.string()).optional() }),
);
/** Kilobytes of compressed scripts that a screen may need, with those of the frame. */
const SCREENS: readonly (readonly [what: string, sources: readonly string[], most: number])[] = [
  ['frame', [], 125],
  ['Traces', ['screens/traces/traces_screen.tsx'], 155],
  ['a trace', ['screens/trace/trace_screen.tsx'], 170],
];

type Measurement = readonly [what: string, measure: () => Promise<ReportRow[]>];

/** Sizes of the files that a browser loads, of a build of this tree. */
async function sizes(): Promise<ReportRow[]> {
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
    ...SCREENS.map(([what, sources, most]) => {
      const chunks = new Set(['main.tsx', ...sources].flatMap((source) => [...needed(source)]));
      const bytes = [...chunks].reduce((sum, name) => sum + sizeOf(`${manifest[name]?.file ?? ''}.gz`), 0);
      return row(`scripts of ${what}, gzip`, bytes, most);
    }),
    row('all scripts, gzip', all('.js.gz'), 480),
    row('styles, gzip', all('.css.gz'), 20),
    row('fonts', all('.woff2'), 90),
  ];
}

function measurements(measuring: Measuring, { target, vocabulary, spans }: PortalRun): Measurement[] {
  const moved = spans.includes(MOVED_SPANS) ? MOVED_SPANS : (spans[0] ?? MOVED_SPANS);
  return [
    ['Traces, nothing cached', () => coldList(measuring)],
    ...spans.flatMap((size): Measurement[] => [
      [`list → trace of ${size} spans`, () => fromList(measuring, size)],
      [`address of a trace of ${size} spans`, () => byLink(measuring, size)],
    ]),
    ['next trace by J', () => nextTrace(measuring)],
    ['span selected', () => selectSpan(measuring)],
    ['prompt of 4.4 MB', () => largePrompt(measuring)],
    ['scroll, zoom, pan', () => motions(measuring, moved)],
    ['find', () => find(measuring, moved)],
    ['search', () => search(measuring)],
    ['filter chosen', () => filter(measuring)],
    ['live list', () => liveTail(measuring, target, vocabulary)],
    [`heap with a trace of ${moved} spans`, () => heapAfter(measuring, moved)],
    ['heap growth', () => heapGrowth(measuring)],
    ['Home', () => home(measuring)],
    ['sizes', sizes],
  ];
}

/** Measures every row; the caller stops the service. */
export async function benchPortal(run: PortalRun): Promise<Section[]> {
  const { target, spans, runs, vocabulary, progress, stopping } = run;
  const session = await openSession(run);
  const rows: ReportRow[] = [];
  try {
    const data = await sendData(target, spans, vocabulary, progress);
    const measuring = { session, data, runs };
    for (const [what, measure] of measurements(measuring, run)) {
      if (stopping.aborted) break;
      progress(`portal: ${what}`);
      rows.push(
        ...(await measure().catch((error: unknown) => {
          process.exitCode = 1;
          return [failedRow(what, error)];
        })),
      );
    }
    const title = `The portal in headless Chromium ${session.browser.version()}, 1440 × 900, ${runs} runs`;
    const section: Section = { title, rows, data: null };
    return run.ingest ? [section, await ingestCost(session, run)] : [section];
  } finally {
    await session.close();
  }
}
