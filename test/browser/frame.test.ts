import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';
import { axeViolations, expectNoFaults, faultsOf, openPage, orgPath, settled } from './support/browser.ts';

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
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.waitForURL((url) => url.pathname === orgPath('/traces'));
  await settled(page);
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  expect(await page.getByRole('dialog').innerText()).toContain('Copy the address of this page');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await page.keyboard.press('ControlOrMeta+k');
  await page.keyboard.type('gh');
  expect(pathOf(page.url())).toBe(orgPath('/traces'));
  expect(await page.getByRole('combobox', { name: 'Command, page or id' }).inputValue()).toBe('gh');
  expectNoFaults(page);
});

it('the palette opens a page by its name and a trace by its id', async () => {
  const page = await openPage({ at: '~/' });
  await settled(page);
  await page.keyboard.press('ControlOrMeta+k');
  await page.keyboard.type('sessions');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname === orgPath('/sessions'));
  await settled(page);
  await page.keyboard.press('ControlOrMeta+k');
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

it('the palette finds judges, datasets and agents by name, and nothing of them before a letter is typed', async () => {
  const page = await openPage({ at: '~/' });
  await settled(page);
  await page.keyboard.press('ControlOrMeta+k');
  const option = page.getByRole('listbox', { name: 'Matches' }).getByRole('option');
  await option.first().waitFor();
  expect(await option.filter({ hasText: 'Does not refuse' }).count()).toBe(0);
  await page.keyboard.type('does not ref');
  await option.filter({ hasText: 'Does not refuse' }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Does not refuse' }).waitFor();
  await page.keyboard.press('ControlOrMeta+k');
  await page.keyboard.type('furniture');
  await option.filter({ hasText: 'furniture' }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.startsWith(orgPath('/datasets/ds_')));
  await page.keyboard.press('ControlOrMeta+k');
  await page.keyboard.type('checkout-ag');
  await option.filter({ hasText: 'checkout-agent' }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.href.includes('checkout-agent'));
  expectNoFaults(page);
});
