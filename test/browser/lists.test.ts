import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, faultsOf, openPage, orgPath, settled } from './support/browser.ts';

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
  const page = await openList('?t=90d&outcome=error&tags=demo');
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
  const page = await openList('?t=90d&tags=demo');
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

it('a search that finds nothing while texts wait for the index says so, and shows them by itself', async () => {
  const page = await openPage({ at: '~/search' });
  await settled(page);
  const meta = { candidates: 0, truncated: false, terms: [{ word: 'cracked', df: 0, idf: 0 }], waiting: 2, took_ms: 3 };
  await page.route('**/v1/spans/search?*', (route) => route.fulfill({ json: { data: [], meta } }), { times: 1 });
  await page.getByRole('searchbox').fill('cracked');
  await page.getByText('2 texts that have just arrived cannot be searched yet. This page searches them').waitFor();
  await page.locator('mark').first().waitFor();
  expectNoFaults(page);
});

it('a search for more words than the API takes is refused at the field, and keeps what was typed', async () => {
  const typed = Array.from({ length: 33 }, (_, at) => `word${at}`).join(' ');
  const page = await openPage({ at: '~/search?q=cracked' });
  await page.locator('mark').first().waitFor();
  const field = page.getByRole('searchbox');
  await field.fill(typed);
  await page.getByRole('alert').filter({ hasText: '32' }).waitFor();
  const described = await field.getAttribute('aria-describedby');
  expect(await page.locator(`[id="${described}"]`).innerText()).toBe('The search must have at most 32 different words');
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  expect(await field.inputValue()).toBe(typed);
  expect(new URL(page.url()).searchParams.get('q')).toBe(typed);
  await page.reload();
  await page.getByRole('alert').filter({ hasText: '32' }).waitFor();
  expect(await field.inputValue()).toBe(typed);
  await field.fill('cracked');
  await page.locator('mark').first().waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
  // The browser reports each refused request on its console.
  expect(faultsOf(page).filter((fault) => !fault.includes('status of 422'))).toEqual([]);
});

describe('the link of a page with a relative range of time', () => {
  const permissions = ['clipboard-read', 'clipboard-write'];
  const copied = (page: Page): Promise<string> => page.evaluate(() => navigator.clipboard.readText());

  it('is the address as it is, and with both ends of the range by a second Y, the message and the menu', async () => {
    const page = await openPage({ at: '~/traces?t=7d&tags=demo', context: { permissions } });
    await settled(page);
    await page.keyboard.press('Shift+Y');
    const offer = page.getByRole('button', { name: 'Copy with fixed times' });
    await offer.waitFor();
    expect(await copied(page)).toBe(page.url());
    const ways = [
      () => offer.click(),
      async () => {
        await page.keyboard.press('Shift+Y');
        await page.keyboard.press('Shift+Y');
      },
      async () => {
        await page.getByRole('button', { name: /^Time range/ }).click();
        await page.getByRole('menuitem', { name: 'Copy link with fixed times' }).click();
      },
    ];
    for (const copy of ways) {
      await page.evaluate(() => navigator.clipboard.writeText(''));
      await copy();
      await eventually(async () => (await copied(page)).includes('until='), { what: 'a copied link with an end' });
      const link = new URL(await copied(page));
      const [since, until] = [link.searchParams.get('since'), link.searchParams.get('until')];
      expect([...link.searchParams.keys()]).toEqual(['since', 'tags', 'until']);
      const days = (Date.parse(until ?? '') - Date.parse(since ?? '')) / 86_400_000;
      expect(days).toBeCloseTo(7, 3);
    }
    await page.goto(await copied(page));
    await settled(page);
    await rows(page).first().waitFor();
    // The range of the opened link is fixed, so there is nothing to offer.
    await page.keyboard.press('Shift+Y');
    await page.getByText('The address is copied.', { exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Copy with fixed times' }).count()).toBe(0);
    expectNoFaults(page);
  });
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
