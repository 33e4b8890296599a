// Every page is held to the same rules: no error on its console, no breach of its policy, no foreign request,
// WCAG 2.2 AA by axe in both themes, one first heading, and no sideways scrolling at the width of a phone. What no checker
// of markup finds is looked at too: no text is cut without an ellipsis, no control lies under something else, and the Tab
// key reaches every control and shows where it is.
import { beforeAll, describe, expect, it } from 'vitest';
import { PORTAL_PAGES, portalPageOf } from '../../api/portal/pages.ts';
import { axeViolations, expectNoFaults, overflow, settled } from './support/browser.ts';
import { furnish, type Furnished, FURNISHED_PAGES } from './support/furnished.ts';
import { coveredControls, cutTexts, tabWalk } from './support/layout.ts';

const PHONE = { width: 320, height: 700 };
/** A zoom of 200 % halves the pixels of a window of 1440 by 900. */
const ZOOMED = { width: 720, height: 450 };

let made: Furnished;

beforeAll(async () => {
  made = await furnish();
});

it('the table names every page of an organization', () => {
  const shown = Object.values(FURNISHED_PAGES).map((pathOf) => new URL(`http://portal/o/org${pathOf(made)}`).pathname);
  const covered = new Set(shown.map((path) => portalPageOf(path)?.path));
  const all = PORTAL_PAGES.map(({ path }) => path).filter((path) => path.startsWith('/o/'));
  expect(all.filter((path) => !covered.has(path))).toEqual([]);
});

describe.each(Object.entries(FURNISHED_PAGES))('the page "%s"', (_name, pathOf) => {
  it.each(['light', 'dark'] as const)('meets WCAG 2.2 AA in the %s theme, without errors', async (colorScheme) => {
    const page = await made.open('owner', pathOf(made), { context: { colorScheme } });
    await settled(page);
    expect(await axeViolations(page)).toEqual([]);
    expect(await cutTexts(page)).toEqual([]);
    expect(await coveredControls(page)).toEqual([]);
    expectNoFaults(page);
  });

  it('has one first heading, cuts nothing and does not scroll sideways at 320 pixels', async () => {
    const page = await made.open('owner', pathOf(made), { context: { viewport: PHONE } });
    await settled(page);
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    expect(await overflow(page)).toBe(0);
    expect(await cutTexts(page)).toEqual([]);
    expect(await coveredControls(page)).toEqual([]);
    expectNoFaults(page);
  });

  it('is reached by the Tab key alone at a zoom of 200 %, and shows where the focus is', async () => {
    const page = await made.open('owner', pathOf(made), { context: { viewport: ZOOMED } });
    await settled(page);
    expect(await overflow(page)).toBe(0);
    expect(await coveredControls(page)).toEqual([]);
    expect(await tabWalk(page)).toEqual([]);
    expectNoFaults(page);
  });
});
