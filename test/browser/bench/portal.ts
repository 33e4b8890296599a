// `npm run bench -- portal`: the web portal in a headless Chromium against its budgets. Fills a
// service by ingest, drives pages by the browser's protocol, and returns one table. Each part is
// attempted by itself: one that fails becomes a row that says so. The browser ends with the run.
import { fillStore } from '../../bench/fill.ts';
import { failedRow, type PortalRun } from '../../bench/portal_rows.ts';
import { type ReportRow, type Section, thousands } from '../../bench/report.ts';
import { buildTime, idleMemory, sizes } from './bundle.ts';
import { sendData } from './data.ts';
import { find, heapAfter, heapGrowth, largePrompt, motions, selectSpan } from './inside.ts';
import { ingestCost } from './ingest_cost.ts';
import { filter, liveTail, search } from './lists.ts';
import { byLink, coldList, fromList, home, type Measuring, nextTrace } from './opens.ts';
import { costsAndComparison, registries } from './pages.ts';
import { openSession } from './session.ts';

const MOVED_SPANS = 10_000;
/** Builds take seconds and vary little. */
const BUILDS_MAX = 5;
type Measurement = readonly [what: string, measure: () => Promise<ReportRow[]>];

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
    ['costs and comparison', () => costsAndComparison(measuring, spans[0] ?? MOVED_SPANS)],
    ['prompts, evals and annotation', () => registries(measuring, target)],
    ['sizes', sizes],
    ['build', () => buildTime(Math.min(measuring.runs, BUILDS_MAX))],
  ];
}

/** Measures every row; the caller stops the service. */
export async function benchPortal(run: PortalRun): Promise<Section[]> {
  const { target, spans, runs, stored, vocabulary, progress, stopping } = run;
  const rows: ReportRow[] = [];
  const attempt = async (what: string, measure: () => Promise<ReportRow[]>): Promise<void> => {
    if (stopping.aborted) return;
    progress(`portal: ${what}`);
    rows.push(
      ...(await measure().catch((error: unknown) => {
        process.exitCode = 1;
        return [failedRow(what, error)];
      })),
    );
  };
  // Before the first request: afterwards caches of the engine and of the processes hold what was read.
  if (target.pid !== null) await attempt('idle memory', () => idleMemory(target));
  if (stored > 0) await fill(run);
  const session = await openSession(run);
  try {
    const measuring = { session, data: await sendData(target, spans, vocabulary, progress), runs };
    for (const [what, measure] of measurements(measuring, run)) await attempt(what, measure);
    const store = stored > 0 ? `${thousands(stored)} spans stored` : 'no other spans stored';
    const title = `The portal in headless Chromium ${session.browser.version()}, 1440 × 900, ${runs} runs, ${store}`;
    const section: Section = { title, rows, data: null };
    return run.ingest ? [section, await ingestCost(session, run)] : [section];
  } finally {
    await session.close();
  }
}

/** @throws Error when the store is out of reach */
async function fill({ target, stored, progress }: PortalRun): Promise<void> {
  if (target.clickhouseUrl === null) throw new Error('--stored fills ClickHouse: name it by --clickhouse-url');
  progress(`portal: filling ${thousands(stored)} spans`);
  await fillStore(target.clickhouseUrl, target.org, stored, progress);
}
