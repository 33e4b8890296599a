// The list of traces with more than one person, while a part of it fails, and while the API restarts.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, expect, inject, it } from 'vitest';
import { stopServices } from '../support/service_process.ts';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, faultsOf, openPage, settled } from './support/browser.ts';
import { aPerson } from './support/person.ts';
import { startPortalService } from './support/portal_service.ts';
import { pidOf } from './support/processes.ts';

afterAll(stopServices);

const rows = (page: Page) =>
  page
    .getByRole('grid')
    .getByRole('row')
    .filter({ has: page.getByRole('gridcell') });

it('a shared view is a tab for another person, who can use it and not change it', async () => {
  const name = `Failed ${randomUUID().slice(0, 8)}`;
  const page = await openPage({ at: '~/traces?t=7d&outcome=error' });
  await settled(page);
  await page.keyboard.press('s');
  const dialog = page.getByRole('dialog', { name: 'Save view' });
  await dialog.getByRole('textbox', { name: 'Name' }).fill(name);
  await dialog.getByRole('checkbox').check();
  await page.keyboard.press('Enter');
  await page.getByRole('tab', { name: `${name} (shared)` }).waitFor();

  const member = await aPerson(inject('portal'), 'member');
  const theirs = await openPage({ at: '~/traces?t=7d', as: member });
  await settled(theirs);
  await theirs.getByRole('tab', { name: `${name} (shared)` }).click();
  await theirs.waitForURL((url) => url.searchParams.get('outcome') === 'error' && url.searchParams.has('view'));
  await settled(theirs);
  expect(await rows(theirs).count()).toBe(await rows(page).count());
  expect(await theirs.getByRole('button', { name: `Actions of the view ${name}` }).count()).toBe(0);

  await page.getByRole('button', { name: `Actions of the view ${name}` }).click();
  await page.getByRole('menuitem', { name: 'Delete view' }).click();
  await page.getByRole('tab', { name: `${name} (shared)` }).waitFor({ state: 'hidden' });
  // The page of the other person still names the view; its filters hold.
  await theirs.reload();
  await settled(theirs);
  expect(await theirs.getByRole('tab', { name: `${name} (shared)` }).count()).toBe(0);
  expect(new URL(theirs.url()).searchParams.get('outcome')).toBe('error');
  expectNoFaults(page);
  expectNoFaults(theirs);
});

it('counts that fail are said in their place with Retry, while rows and histogram stay', async () => {
  const page = await openPage({ at: '~/me' });
  await settled(page);
  const failure = { code: 'upstream_unavailable', detail: 'The store did not answer.', request_id: 'req_test' };
  const facets = '**/v1/traces/facets*';
  await page.route(facets, (route) => route.fulfill({ status: 502, json: failure }));
  await page.getByRole('link', { name: 'Traces' }).click();
  const rail = page.getByRole('complementary', { name: 'Filters' });
  await rail.getByText('The store did not answer.').waitFor();
  expect(await rows(page).count()).toBeGreaterThan(0);
  expect(await page.getByRole('alert').count()).toBe(1);
  await page.unroute(facets);
  await rail.getByRole('button', { name: 'Retry' }).click();
  await rail.getByRole('heading', { name: 'Outcome' }).waitFor();
  // The browser itself reports each answer of 502.
  expect(faultsOf(page).filter((line) => !line.includes('502'))).toEqual([]);
});

it('a number of Home that cannot be read says why, and the others stay', async () => {
  const page = await openPage({ at: '~/me' });
  await settled(page);
  const failure = { code: 'upstream_unavailable', detail: 'The store did not answer.', request_id: 'req_test' };
  await page.route('**/v1/cost/forecast*', (route) => route.fulfill({ status: 502, json: failure }));
  await page.getByRole('link', { name: 'Home', exact: true }).click();
  await page.getByRole('link', { name: /^Cost today.*–.*The store did not answer\./ }).waitFor();
  await page.getByRole('link', { name: /^Traces \d/ }).waitFor();
  expect(faultsOf(page).filter((line) => !line.includes('502'))).toEqual([]);
});

it('a live list whose API process is killed connects again and shows what landed meanwhile', async () => {
  const portal = await startPortalService();
  const send = (trace_id: string): Promise<Response> =>
    api(
      `/orgs/${portal.org_id}/ingest/custom`,
      { events: [{ name: trace_id, trace_id, outcome: 'success', duration_ms: 5 }] },
      portal,
    );
  const listed = async (trace_id: string): Promise<boolean> => {
    const { data } = (await (await api(`/v1/traces?trace_ids=${trace_id}`, undefined, portal)).json()) as {
      data: unknown[];
    };
    return data.length === 1;
  };
  await send('before-the-kill');
  await eventually(() => listed('before-the-kill'));
  const page = await openPage({ at: '~/traces?live=1', portal });
  const row = (name: string) => page.getByRole('grid').getByRole('link', { name });
  await row('before-the-kill').waitFor();

  // The page does not reach the stream before the next trace has landed.
  await page.route('**/v1/live*', (route) => route.abort());
  const pid = pidOf(portal, 'api');
  process.kill(pid, 'SIGKILL');
  await eventually(() => pidOf(portal, 'api') !== pid, { what: 'another API process' });
  await eventually(async () => (await send('during-the-kill')).ok, { what: 'an acknowledged trace' });
  await eventually(() => listed('during-the-kill'));
  expect(await row('during-the-kill').count()).toBe(0);
  await page.unroute('**/v1/live*');
  await row('during-the-kill').waitFor();
  await send('after-the-kill');
  await row('after-the-kill').waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
});
