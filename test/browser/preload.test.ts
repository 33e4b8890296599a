// Requests that a page needs start beside that for the session, so that no page waits for three answers
// in a row. A held answer of the session shows it: the rest of the page is asked for nevertheless.
import { expect, inject, it } from 'vitest';
import type { Page, Route } from 'playwright-core';
import { api, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';

async function aTrace(): Promise<string> {
  const { data } = (await (await api('/v1/traces?limit=1&agent_id=checkout-agent')).json()) as {
    data: { trace_id: string }[];
  };
  const [item] = data;
  if (item === undefined) throw new Error('the demonstration sent no run of checkout-agent');
  return item.trace_id;
}

/** Holds the answer of the session until the page has asked for an address that begins with `path`. */
async function sessionAfter(page: Page, path: string): Promise<void> {
  const asked = page.waitForRequest((request) => new URL(request.url()).pathname === path);
  await page.route('**/v1/session', async (route: Route) => {
    await asked;
    await route.continue();
  });
}

it('a link to a trace asks for its spans beside the session', async () => {
  const trace_id = await aTrace();
  const page = await openPage({ at: '~/me' });
  await settled(page);
  await sessionAfter(page, `/v1/traces/${trace_id}/outline`);
  await page.goto(orgPath(`/traces/${trace_id}`));
  await page.getByRole('treegrid').waitFor();
  await settled(page);
  expectNoFaults(page);
});

it('a link to a trace asks for session and spans before the other scripts are there, and once', async () => {
  const trace_id = await aTrace();
  const page = await openPage({ at: '~/me' });
  await settled(page);
  const html = await (await fetch(inject('portal').url, { headers: { accept: 'text/html' } })).text();
  const early = /<script type="module" async src="([^"]+)"/.exec(html)?.[1] ?? '';
  const wanted = ['/v1/session', `/v1/traces/${trace_id}/outline`];
  const asked: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (wanted.includes(pathname)) asked.push(pathname);
  });
  const all = Promise.all(
    wanted.map((path) => page.waitForRequest((request) => new URL(request.url()).pathname === path)),
  );
  await page.route('**/portal/assets/*.js', async (route) => {
    if (new URL(route.request().url()).pathname !== early) await all;
    await route.continue();
  });
  await page.goto(orgPath(`/traces/${trace_id}`));
  await page.getByRole('treegrid').waitFor();
  await settled(page);
  expect(asked.toSorted()).toEqual(wanted.toSorted());
  expectNoFaults(page);
});

it.each([
  ['/traces?t=7d', '/v1/traces'],
  ['/traces?t=7d', '/v1/traces/series'],
  ['/sessions?t=7d', '/v1/sessions'],
  ['/users?t=7d', '/v1/users'],
])('the page %s asks for %s beside the session, and for nothing twice', async (at, path) => {
  const page = await openPage({ at: '~/me' });
  await settled(page);
  const asked: string[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).pathname === path) asked.push(request.url());
  });
  await sessionAfter(page, path);
  await page.goto(orgPath(at));
  await page.locator('main').getByRole('grid').waitFor();
  await settled(page);
  // The stream of new traces, and the sparklines, ask for other things at the same path.
  expect(new Set(asked).size).toBe(asked.length);
  expectNoFaults(page);
});

it('a link to a trace without a session leads to the login page, without a dialog over it', async () => {
  const page = await openPage({ at: `~/traces/${await aTrace()}`, loggedIn: false });
  await page.waitForURL((url) => url.pathname === '/login');
  await page.getByRole('heading', { name: 'Log in', exact: true }).waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
});

it('a list of sessions asks for the sparklines of its rows in one request', async () => {
  const page = await openPage({ at: '~/me' });
  await settled(page);
  const asked: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/v1/traces/series'))
      asked.push(new URL(request.url()).searchParams.get('groups') ?? '');
  });
  await page.goto(orgPath('/sessions?t=7d'));
  await page
    .locator('main')
    .getByRole('img', { name: /traces? over time/ })
    .first()
    .waitFor();
  await settled(page);
  const rows = await page
    .locator('main')
    .getByRole('img', { name: /traces? over time/ })
    .count();
  expect(rows).toBeGreaterThan(1);
  expect(asked.map((groups) => groups.split(',').length)).toEqual([rows]);
});
