// The walk of each role: through every link of its rail, and through every page of the portal by its address. The person
// is refused nothing, a page that the role may not read says so, and nothing appears on the console.
import type { Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { expectNoFaults, faultsOf, orgPath, settled } from './support/browser.ts';
import { furnish, type Furnished, FURNISHED_PAGES } from './support/furnished.ts';
import type { Role } from './support/person.ts';

/** A walk opens about seventy pages. */
const WALK_MS_MAX = 600_000;
const ROLES: readonly Role[] = ['viewer', 'member', 'admin', 'owner'];

let made: Furnished;

beforeAll(async () => {
  made = await furnish();
});

/** Collects the requests of a page that are refused. */
function refusalsOf(page: Page): string[] {
  const refused: string[] = [];
  page.on('response', (answer) => {
    if (answer.status() === 403) refused.push(`${answer.url()} on ${page.url()}`);
  });
  return refused;
}

it.each(ROLES)('the role %s is refused nothing on any page that its rail names', async (role) => {
  const page = await made.open(role, '/me');
  const refused = refusalsOf(page);
  await settled(page);
  const links = page.getByRole('navigation', { name: 'Sections' }).getByRole('link');
  const names = await links.evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''));
  expect(names.length).toBeGreaterThan(2);
  for (const href of names) {
    await page.getByRole('navigation', { name: 'Sections' }).locator(`a[href="${href}"]`).click();
    await page.waitForURL((url) => url.pathname === href);
    await settled(page);
    expect(await page.getByText('may not read this page').count(), href).toBe(0);
  }
  expect(refused).toEqual([]);
  expectNoFaults(page);
});

it.each(ROLES)(
  'the role %s is refused nothing at the address of a page that it may read, and told which pages it may not read',
  { timeout: WALK_MS_MAX },
  async (role) => {
    const page = await made.open(role, '/me');
    const refused = refusalsOf(page);
    const closed: string[] = [];
    let known = 0;
    for (const [name, pathOf] of Object.entries(FURNISHED_PAGES)) {
      await page.goto(orgPath(pathOf(made)));
      await settled(page);
      const mayNot = (await page.getByText('may not read this page').count()) > 0;
      if (mayNot) {
        // A page asks for its data beside the session, which says that the person may not read it.
        closed.push(name);
        refused.length = 0;
      } else {
        expect(await page.getByRole('heading', { level: 1 }).count(), name).toBe(1);
      }
      expect(refused, name).toEqual([]);
      const faults = faultsOf(page).slice(known);
      expect(
        faults.filter((fault) => !(mayNot && fault.includes('status of 403'))),
        name,
      ).toEqual([]);
      known += faults.length;
    }
    if (role === 'owner') expect(closed).toEqual([]);
    if (role === 'viewer') expect(closed).toContain('traces');
  },
);

it('no shortcut has two meanings in one part of a page', { timeout: WALK_MS_MAX }, async () => {
  const page = await made.open('owner', '/me');
  for (const [name, pathOf] of Object.entries(FURNISHED_PAGES)) {
    await page.goto(orgPath(pathOf(made)));
    await settled(page);
    // A dialog that the address opens has the keys for itself.
    if ((await page.locator('dialog:modal').count()) > 0) continue;
    // A field that has the focus takes the key.
    await page.evaluate(() => {
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    });
    await page.keyboard.press('?');
    const dialog = page.getByRole('dialog', { name: 'Shortcuts' });
    await dialog.waitFor();
    const parts = await dialog.getByRole('heading', { level: 3 }).evaluateAll((headings) =>
      headings.map((heading) => ({
        part: heading.textContent,
        keys: [...(heading.parentElement?.querySelectorAll('dt > *') ?? [])].map((keys) =>
          [...keys.querySelectorAll('kbd')].map((key) => key.textContent).join(' '),
        ),
      })),
    );
    expect(parts.length, name).toBeGreaterThan(0);
    for (const { part, keys } of parts) {
      expect(keys.length, `${name}: ${part}`).toBeGreaterThan(0);
      expect(
        keys.filter((one, at) => keys.indexOf(one) !== at),
        `${name}: ${part}`,
      ).toEqual([]);
    }
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  }
});
