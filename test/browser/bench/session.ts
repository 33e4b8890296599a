// A headless Chromium for the benchmark, with pages that have the probe and the session of a person.
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { makeLoginLink } from '../../../ops/launch/login_link.ts';
import { localNatsUrl } from '../../../ops/launch/secrets.ts';
import type { PortalRun } from '../../bench/portal_rows.ts';
import type { Target } from '../../bench/target.ts';
import { findChromium } from '../../support/chromium/install.ts';
import { launchChromium } from '../support/chromium.ts';
import { exchangeTicket, portalBuilt, ticketOf } from '../support/portal_service.ts';
import { type Action, installProbe, type Seen, type Wanted } from './probe.ts';

const WINDOW = { width: 1440, height: 900 };
const ACTION_MS_MAX = 60_000;

export interface Session {
  browser: Browser;
  /** Opens a browser profile without anything in its cache. */
  profile(): Promise<BrowserContext>;
  /** Returns an address of the organization. */
  at(path: string): string;
  close(): Promise<void>;
}

/** Starts the browser and logs in. */
export async function openSession({ target, login, progress }: PortalRun): Promise<Session> {
  await portalBuilt(target.url);
  const cookie = await exchangeTicket(target.url, ticketOf(login ?? (await ownLink(target))));
  const browser = await launchChromium(await findChromium(progress));
  const profile = async (): Promise<BrowserContext> => {
    const context = await browser.newContext({
      baseURL: target.url,
      viewport: WINDOW,
      locale: 'en-GB',
      timezoneId: 'UTC',
    });
    context.setDefaultTimeout(ACTION_MS_MAX);
    await context.addCookies([{ ...cookie, url: target.url, httpOnly: true, sameSite: 'Strict' }]);
    await context.addInitScript(installProbe);
    return context;
  };
  return {
    browser,
    profile,
    at: (path) => `/o/${encodeURIComponent(target.org)}${path}`,
    close: () => browser.close(),
  };
}

/** Makes a login link of a service that was started here. */
function ownLink({ url, dataDir }: Target): Promise<string> {
  if (dataDir === null) throw new Error('a running service needs --login with a link that `npm run login` prints');
  return makeLoginLink({ baseUrl: url, natsUrl: localNatsUrl(dataDir) });
}

/** Opens an address and resolves when the page has reached a state; `ms` counts from the navigation. */
export async function load(context: BrowserContext, at: string, wanted: Wanted): Promise<{ page: Page; seen: Seen }> {
  const page = await context.newPage();
  await page.addInitScript((state: Wanted) => {
    window.portalProbe.loaded = window.portalProbe.until(state);
  }, wanted);
  await page.goto(at, { waitUntil: 'commit' });
  const seen = await page.evaluate(() => window.portalProbe.loaded);
  if (seen === null) throw new Error(`${at} was not loaded`);
  return { page, seen };
}

/** Acts in a page and resolves when it has reached a state. */
export const act = (page: Page, action: Action, wanted: Wanted): Promise<Seen> =>
  page.evaluate(([what, state]) => window.portalProbe.act(what, state), [action, wanted] as const);

export const until = (page: Page, wanted: Wanted): Promise<Seen> =>
  page.evaluate((state) => window.portalProbe.until(state), wanted);

export const longestTask = (page: Page, since: number): Promise<number> =>
  page.evaluate((from) => window.portalProbe.longestTask(from), since);

/** Runs a measurement in a profile of its own, which is closed whatever happens. */
export async function inProfile<T>(session: Session, measure: (context: BrowserContext) => Promise<T>): Promise<T> {
  const context = await session.profile();
  try {
    return await measure(context);
  } finally {
    await context.close();
  }
}

/** Runs a measurement several times, each in a profile of its own, after one that is not counted. */
export async function repeated<T>(
  session: Session,
  runs: number,
  measure: (context: BrowserContext, run: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  for (let run = -1; run < runs; run += 1) {
    const result = await inProfile(session, (context) => measure(context, run + 1));
    if (run >= 0) results.push(result);
  }
  return results;
}

/** Returns the bytes of the heap of a page after a forced collection. */
export async function heapOf(page: Page): Promise<number> {
  const cdp = await page.context().newCDPSession(page);
  try {
    await cdp.send('HeapProfiler.enable');
    // The first collection lets finalizers run, the second frees what they held.
    await cdp.send('HeapProfiler.collectGarbage');
    await cdp.send('HeapProfiler.collectGarbage');
    const { usedSize } = await cdp.send('Runtime.getHeapUsage');
    return usedSize;
  } finally {
    await cdp.detach();
  }
}

/** Returns a function that returns the share of a core that the page has used since the call. */
export async function cpuMeter(page: Page): Promise<() => Promise<number>> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');
  const read = async (): Promise<{ used: number; at: number }> => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    const value = (name: string): number => metrics.find((metric) => metric.name === name)?.value ?? Number.NaN;
    const whole = value('ProcessTime');
    return { used: Number.isNaN(whole) ? value('TaskDuration') : whole, at: performance.now() };
  };
  const before = await read();
  return async () => {
    const after = await read();
    await cdp.detach();
    return ((after.used - before.used) * 1000) / (after.at - before.at);
  };
}
