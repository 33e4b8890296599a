import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { describe, expect, inject, it } from 'vitest';
import { axeViolations, expectNoFaults, faultsOf, openPage, orgPath, overflow, settled } from './support/browser.ts';
import { pressSequence } from './support/hands.ts';
import { coveredControls, cutTexts, tabWalk } from './support/layout.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Returns a login link as `npm run login` prints it. */
async function loginLink(): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [path.join(ROOT, 'ops/tools/login.ts')], {
    env: { ...process.env, SERVICE_DATA_DIR: inject('portal').data_dir },
  });
  const link = /http\S+\/login#\S+/.exec(stdout)?.[0];
  if (link === undefined) throw new Error(`no link in: ${stdout}`);
  return link;
}

/** Opens the palette. Letters that are typed before it is there would be shortcuts of the page. */
async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('ControlOrMeta+k');
  await page.getByRole('combobox', { name: 'Command, page or id' }).waitFor();
}

const pathOf = (url: string): string => new URL(url).pathname;

it('a login link leads into the organization, and is refused with the way to a new one when it is used again', async () => {
  const link = await loginLink();
  const page = await openPage({ at: link, loggedIn: false });
  await page.waitForURL((url) => url.pathname.startsWith('/o/'));
  expect(pathOf(page.url())).toBe(orgPath(''));
  await settled(page);
  expect(page.url()).not.toContain(link.split('#')[1] ?? link);

  const again = await openPage({ at: link, loggedIn: false });
  await again.getByRole('alert').waitFor();
  expect(await again.getByRole('alert').innerText()).toContain('npm run login');
  expect(pathOf(again.url())).toBe('/login');
});

it('a page that is opened without a session leads to the login page and, after it, back to where it led', async () => {
  const page = await openPage({ at: '~/traces?outcome=error', loggedIn: false });
  await page.waitForURL((url) => url.pathname === '/login');
  const to = new URL(page.url()).searchParams.get('to');
  expect(to).toBe(`${orgPath('/traces')}?outcome=error`);
  const { url, cookie } = inject('portal');
  await page.context().addCookies([{ ...cookie, url, httpOnly: true, sameSite: 'Strict' }]);
  await page.goto(to ?? '');
  await page.getByRole('heading', { level: 1, name: 'Traces' }).waitFor();
});

it('g and a letter go to a section, ? lists the keys, and letters do nothing while something is typed', async () => {
  const page = await openPage({ at: '~/' });
  await settled(page);
  await pressSequence(page, 'g', 't');
  await page.waitForURL((url) => url.pathname === orgPath('/traces'));
  await settled(page);
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  expect(await page.getByRole('dialog').innerText()).toContain('Copy the address of this page');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await openPalette(page);
  await page.keyboard.type('gh');
  expect(pathOf(page.url())).toBe(orgPath('/traces'));
  expect(await page.getByRole('combobox', { name: 'Command, page or id' }).inputValue()).toBe('gh');
  expectNoFaults(page);
});

it('the palette opens a page by its name and a trace by its id', async () => {
  const page = await openPage({ at: '~/' });
  await settled(page);
  await openPalette(page);
  await page.keyboard.type('sessions');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname === orgPath('/sessions'));
  await settled(page);
  await openPalette(page);
  await page.keyboard.type('trc_00000000deadbeef');
  await page.getByRole('option').first().waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname === orgPath('/traces/trc_00000000deadbeef'));
});

it('an address that no page has shows so, with the way home', async () => {
  const page = await openPage({ at: '~/nothing-here' });
  await page.getByRole('heading', { level: 1, name: 'No such page' }).waitFor();
  expect(await axeViolations(page)).toEqual([]);
  // The page itself is answered with 404, which the browser reports.
  expect(faultsOf(page).filter((line) => !line.includes('404'))).toEqual([]);
});

it('the chosen theme holds after a reload', async () => {
  const page = await openPage({ at: '~/me' });
  await settled(page);
  await page.getByRole('radio', { name: 'Dark' }).check();
  await page.reload();
  await settled(page);
  expect(await page.getByRole('radio', { name: 'Dark' }).isChecked()).toBe(true);
  expect(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe('dark');
  expectNoFaults(page);
});

it('the palette finds prompts, judges, datasets and agents by name, and nothing of them before a letter is typed', async () => {
  const page = await openPage({ at: '~/' });
  await settled(page);
  await openPalette(page);
  const option = page.getByRole('listbox', { name: 'Matches' }).getByRole('option');
  await option.first().waitFor();
  expect(await option.filter({ hasText: 'Does not refuse' }).count()).toBe(0);
  await page.keyboard.type('does not ref');
  await option.filter({ hasText: 'Does not refuse' }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Does not refuse' }).waitFor();
  await openPalette(page);
  await page.keyboard.type('furniture');
  await option.filter({ hasText: 'furniture' }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.startsWith(orgPath('/datasets/ds_')));
  await openPalette(page);
  await page.keyboard.type('checkout-ag');
  await option.filter({ hasText: 'checkout-agent' }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.href.includes('checkout-agent'));
  await openPalette(page);
  await page.keyboard.type('help-desk-ans');
  await option.filter({ hasText: 'help-desk-answer' }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'help-desk-answer' }).waitFor();
  expectNoFaults(page);
});

it('g and / lead from a trace to the search over all traces, and / alone to its own find', async () => {
  const page = await openPage({ at: '~/traces?t=7d&agent_id=checkout-agent' });
  await settled(page);
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('treegrid').waitFor();
  await settled(page);
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement?.getAttribute('type') === 'search');
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => document.activeElement?.getAttribute('type') !== 'search');
  await pressSequence(page, 'g', '/');
  await page.waitForURL((url) => url.pathname === orgPath('/search'));
  expectNoFaults(page);
});

it('the rail shows icons only in a narrow window, until somebody widens it', async () => {
  const page = await openPage({ at: '~/me', context: { viewport: { width: 1024, height: 768 } } });
  await settled(page);
  const title = page.getByRole('navigation', { name: 'Sections' }).getByText('Traces', { exact: true });
  expect(await title.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Show the titles of the sections' }).click();
  await title.waitFor();
  await page.reload();
  await settled(page);
  expect(await title.isVisible()).toBe(true);
  await page.keyboard.press('[');
  await title.waitFor({ state: 'hidden' });
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole('button', { name: 'Show the titles of the sections' }).waitFor();
  expectNoFaults(page);
});

describe.each(['/login', '/operator/orgs'])('the page %s without a session', (at) => {
  const PHONE = { width: 320, height: 700 };
  // The browser reports the refused request for the session on its console.
  const faults = (page: Page): string[] => faultsOf(page).filter((fault) => !fault.includes('status of 401'));

  it.each(['light', 'dark'] as const)(
    'asks for a login, and meets WCAG 2.2 AA in the %s theme',
    async (colorScheme) => {
      const page = await openPage({ at, loggedIn: false, context: { colorScheme } });
      await page.getByRole('button', { name: /^Log in/ }).waitFor();
      await settled(page);
      expect(await axeViolations(page)).toEqual([]);
      expect(await coveredControls(page)).toEqual([]);
      expect(faults(page)).toEqual([]);
    },
  );

  it('has one first heading, fits 320 pixels, and is reached by the Tab key alone', async () => {
    const page = await openPage({ at, loggedIn: false, context: { viewport: PHONE } });
    await page.getByRole('button', { name: /^Log in/ }).waitFor();
    await settled(page);
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    expect(await overflow(page)).toBe(0);
    expect(await cutTexts(page)).toEqual([]);
    expect(await tabWalk(page)).toEqual([]);
    expect(faults(page)).toEqual([]);
  });
});
