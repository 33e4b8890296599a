// The walk of a role: pages that the person is shown, and those that explain themselves.
import { expect } from 'vitest';
import { expectNoFaults, settled } from './browser.ts';
import type { OwnOrg, Role } from './own_org.ts';

/**
 * Opens a page as a person of a role, and expects that no request is refused and that the page explains
 * itself to a person who may not read it.
 * @param section name of its link in the rail; null where it has none
 */
export async function expectWalk(
  org: OwnOrg,
  { role, path, may, section }: { role: Role; path: string; may: boolean; section: string | null },
): Promise<void> {
  const page = await org.open(role, path);
  const refused: string[] = [];
  page.on('response', (answer) => {
    if (answer.status() === 403) refused.push(answer.url());
  });
  await page.reload();
  await settled(page);
  if (!may) await page.getByText('Your role in Own organization may not read this page').waitFor();
  if (section !== null)
    expect(
      await page
        .getByRole('navigation', { name: 'Sections' })
        .getByRole('link', { name: section, exact: true })
        .count(),
    ).toBe(may ? 1 : 0);
  expect(refused).toEqual([]);
  expectNoFaults(page);
  await page.close();
}
