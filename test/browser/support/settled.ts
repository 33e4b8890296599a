// When a page shows its data. A page that was just opened has asked for nothing yet, so requests are
// counted from its first one on.
import type { Page, Request } from 'playwright-core';
import { eventually } from '../../support/wait.ts';

/** Requests of a page that have no answer yet. */
const pending = new WeakMap<Page, Set<Request>>();
/** Checks in a row that find nothing pending. A page that renders an answer may ask for more. */
const QUIET_CHECKS = 5;

/** A stream never ends, so it is not counted. */
const isStream = (request: Request): boolean => new URL(request.url()).pathname === '/v1/live';

/** Counts the requests of a page. Call it before the page is opened. */
export function watchRequests(page: Page): void {
  const open = new Set<Request>();
  pending.set(page, open);
  page.on('requestfinished', (request) => open.delete(request));
  page.on('requestfailed', (request) => open.delete(request));
  page.on('request', (request) => {
    if (!isStream(request)) open.add(request);
  });
}

/** A page whose screen is still being loaded is empty, and has asked for none of its data yet. */
const isBusy = (page: Page): Promise<boolean> =>
  page.evaluate(() => {
    const main = document.querySelector('main');
    return main === null || main.childElementCount === 0 || main.querySelector('[aria-busy="true"]') !== null;
  });

/** Resolves once no request is without an answer and no part of the page is marked as busy, in several checks in a row. */
export async function settled(page: Page): Promise<void> {
  await page.locator('main').waitFor();
  let quiet = 0;
  await eventually(
    async () => {
      quiet = pending.get(page)?.size === 0 && !(await isBusy(page)) ? quiet + 1 : 0;
      return quiet === QUIET_CHECKS;
    },
    { what: `the data of ${page.url()}` },
  );
}
