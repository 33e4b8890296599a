// Measures what a person waits for when a page opens: the list, a trace from the list, a trace by its
// address, the next trace by its key, and the home page. Each run has a profile of its own, unless the
// row says that something is cached.
import type { BrowserContext } from 'playwright-core';
import { CACHED_LINK_BARS, COLD_LINK_BARS, OPEN_BARS, timesRow } from '../../bench/portal_rows.ts';
import { thousands, type ReportRow } from '../../bench/report.ts';
import type { PortalData } from './data.ts';
import type { Wanted } from './probe.ts';
import { act, inProfile, load, repeated, type Session } from './session.ts';

export const GRID = '[role="treegrid"]';
const SELECTED = `${GRID} [role="row"][aria-selected="true"]`;
const ROWS = '[role="grid"] [role="gridcell"]';
const NEXT_PER_PAGE = 30;

/** Rows are painted, the cause of the failure is selected, and `j` is answered. */
const interactive: Wanted = {
  present: [SELECTED],
  absent: ['[data-stale="true"]'],
  answers: ['j', GRID, 'aria-activedescendant'],
};

export interface Measuring {
  session: Session;
  data: PortalData;
  runs: number;
}

const pathOf = ({ session, data }: Measuring, size: number): string =>
  session.at(`/traces/${data.large.get(size) ?? ''}`);

/** Cold open of the list. */
export async function coldList({ session, runs }: Measuring): Promise<ReportRow[]> {
  const results = await repeated(session, runs, async (context) => {
    const { page, seen } = await load(context, session.at('/traces?t=7d'), { present: [ROWS] });
    return { paint: await page.evaluate(() => window.portalProbe.firstPaint()), rows: seen.at };
  });
  return [
    timesRow(
      'Traces, nothing cached: first paint',
      results.map(({ paint }) => paint),
      { p50: 250, p95: 450 },
    ),
    timesRow(
      'Traces, nothing cached: rows there',
      results.map(({ rows }) => rows),
      { p50: 450, p95: 800 },
    ),
  ];
}

/** Milliseconds for which a pointer stays on a link before it is pressed; people take longer. */
const REST_MS = 100;

/** A click on the row of a trace of this size, by a pointer that comes to the row first, and by a program that does not. */
export async function fromList({ session, data, runs }: Measuring, size: number): Promise<ReportRow[]> {
  const list = session.at(`/traces?t=7d&tags=${data.tagOf(size)}`);
  const click = `[role="grid"] a[href$="/traces/${data.large.get(size) ?? ''}"]`;
  const open = (rest?: number) =>
    repeated(session, runs, async (context) => {
      const { page } = await load(context, list, { present: [ROWS, 'aside#facets h2'] });
      return (await act(page, { click, ...(rest === undefined ? {} : { rest }) }, interactive)).ms;
    });
  const what = `list → trace of ${thousands(size)} spans`;
  const note = `the pointer rests on the row for ${REST_MS} ms`;
  return [
    timesRow(`${what}, click to interactive`, await open(REST_MS), OPEN_BARS[size] ?? {}, note),
    timesRow(`${what}, click without a pointer`, await open()),
  ];
}

/** The address of a trace, with and without the files of the portal in the cache of the browser. */
export async function byLink(measuring: Measuring, size: number): Promise<ReportRow[]> {
  const { session, runs } = measuring;
  const path = pathOf(measuring, size);
  const cold = await repeated(session, runs, async (context) => (await load(context, path, interactive)).seen.at);
  const cached = await inProfile(session, (context) => again(context, path, runs));
  const what = `address of a trace of ${thousands(size)} spans`;
  return [
    timesRow(`${what}, files cached`, cached, CACHED_LINK_BARS[size] ?? {}),
    timesRow(`${what}, nothing cached`, cold, COLD_LINK_BARS[size] ?? {}),
  ];
}

async function again(context: BrowserContext, path: string, runs: number): Promise<number[]> {
  const times: number[] = [];
  for (let run = -1; run < runs; run += 1) {
    const { page, seen } = await load(context, path, interactive);
    if (run >= 0) times.push(seen.at);
    await page.close();
  }
  return times;
}

/** Opens the first trace of 20 spans from its list, so that `J` has a list to go through. */
export async function openFirstSmall(context: BrowserContext, { session, data }: Measuring) {
  const list = session.at(`/traces?t=7d&tags=${data.small.tag}`);
  const { page } = await load(context, list, { present: [ROWS] });
  await act(page, { click: '[role="grid"] [role="gridcell"] a[href*="/traces/"]' }, interactive);
  return page;
}

/** The next trace of the list, by its key. */
export async function nextTrace(measuring: Measuring): Promise<ReportRow[]> {
  const { session, runs, data } = measuring;
  const times: number[] = [];
  const perPage = Math.min(NEXT_PER_PAGE, data.small.traces - 2);
  while (times.length < runs)
    await inProfile(session, async (context) => {
      const page = await openFirstSmall(context, measuring);
      for (let step = -1; step < perPage && times.length < runs; step += 1) {
        const { ms } = await act(page, { key: 'J' }, { ...interactive, titleNot: await page.title() });
        // The first one was not asked for ahead.
        if (step >= 0) times.push(ms);
      }
    });
  return [timesRow('next trace of 20 spans by J', times, { p50: 80, p95: 160 })];
}

/** The last panel of the home page. */
export async function home({ session, runs }: Measuring): Promise<ReportRow[]> {
  const times = await repeated(
    session,
    runs,
    async (context) =>
      (
        await load(context, session.at(''), {
          present: ['section[aria-label="The last 24 hours"]', 'main svg', 'main li a'],
          absent: ['main [aria-busy="true"]'],
        })
      ).seen.at,
  );
  return [timesRow('Home, nothing cached: the last panel', times, { p50: 500 })];
}
