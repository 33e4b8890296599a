import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';

const rows = (page: Page) =>
  page
    .getByRole('grid')
    .getByRole('row')
    .filter({ has: page.getByRole('gridcell') });
const openList = async (query: string): Promise<Page> => {
  const page = await openPage({ at: `~/traces${query}` });
  await settled(page);
  await rows(page).first().waitFor();
  return page;
};

async function totalOf(query: string): Promise<number> {
  const { meta } = (await (await api(`/v1/traces?limit=1&${query}`)).json()) as { meta: { total: number } };
  return meta.total;
}

it('a filter in the address is the filter of the list, after a reload and after Back too', async () => {
  const failed = await totalOf('outcome=error&tags=demo');
  const page = await openList('?t=7d&outcome=error&tags=demo');
  const says = page.getByText(`${failed} traces`, { exact: true });
  await says.waitFor();
  await page.reload();
  await settled(page);
  await says.waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.startsWith(orgPath('/traces/')));
  await settled(page);
  await page.goBack();
  await settled(page);
  await says.waitFor();
  expect(new URL(page.url()).searchParams.get('outcome')).toBe('error');
  expectNoFaults(page);
});

it('a facet that is chosen narrows the list to the number that stands beside it', async () => {
  const page = await openList('?t=7d&tags=demo');
  const count = await totalOf('tags=demo&agent_id=checkout-agent');
  const choice = page.getByRole('button', { name: /^checkout-agent\b/ }).first();
  await choice.waitFor();
  await choice.click();
  await page.waitForURL((url) => url.searchParams.get('agent_id') === 'checkout-agent');
  await settled(page);
  await page.getByText(`${count} trace${count === 1 ? '' : 's'}`, { exact: true }).waitFor();
  expectNoFaults(page);
});

it('rows are walked, looked at and selected by keys', async () => {
  const page = await openList('?t=7d&tags=demo');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await eventually(async () => (await page.getByRole('grid').getByRole('row', { selected: true }).count()) >= 1, {
    what: 'a selected row',
  });
  await page.keyboard.press('Space');
  await page.waitForURL((url) => url.searchParams.has('peek'));
  await page.keyboard.press('Escape');
  await page.waitForURL((url) => !url.searchParams.has('peek'));
  expectNoFaults(page);
});

it('a search shows ranked hits with the words marked, and Enter opens the span', async () => {
  const page = await openPage({ at: '~/search' });
  await settled(page);
  await page.getByRole('searchbox').fill('cracked lid');
  await page.waitForURL((url) => url.searchParams.get('q') === 'cracked lid');
  await settled(page);
  await page.locator('mark').first().waitFor();
  expect((await page.locator('mark').first().innerText()).toLowerCase()).toMatch(/cracked|lid/);
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(() => document.activeElement?.tagName === 'A');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.startsWith(orgPath('/traces/')));
  expectNoFaults(page);
});

it('a view is saved under a name, found among the tabs, and deleted', async () => {
  const page = await openList('?t=7d&outcome=timeout');
  const name = `Timeouts ${Date.now()}`;
  await page.getByRole('button', { name: 'Save view' }).click();
  await page.getByRole('dialog').getByRole('textbox').first().fill(name);
  await page.keyboard.press('Enter');
  await page.getByText(name).first().waitFor();
  const { data } = (await (await api('/v1/views')).json()) as { data: { view_id: string; name: string }[] };
  // A private view belongs to the person who made it, so the key of a program does not see it.
  expect(data.map((view) => view.name)).not.toContain(name);
  expectNoFaults(page);
});

it('a session shows its turns with what the user said', async () => {
  const page = await openPage({ at: '~/sessions/session_refund-kettle_0' });
  await settled(page);
  await page.getByText('cracked lid').first().waitFor();
  expectNoFaults(page);
});
