// Invites and transfers of ownership, accepted in a second browser by the person they are for: with a session, after a
// login, and by nobody else; a link that was used, withdrawn or cut off says so.
import type { Locator, Page } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { axeViolations, expectNoFaults, faultsOf, openPage, overflow, settled } from './support/browser.ts';
import type { Cookie } from './support/person.ts';
import { aStranger, OwnOrg } from './support/own_org.ts';

interface Member {
  user_id: string;
  email: string;
  role: string;
  status: string;
}

let org: OwnOrg;

beforeEach(async () => {
  org = await OwnOrg.make();
});

const members = (): Promise<Member[]> => org.data('GET', `/orgs/${org.org_id}/members`);
const dialog = (page: Page): Locator => page.getByRole('dialog');
/** Returns path and fragment of the link that a dialog shows once. */
async function linkIn(page: Page, text: RegExp): Promise<string> {
  const link = new URL(await dialog(page).getByText(text).innerText());
  return link.pathname + link.hash;
}

/** Invites a person as the owner does, and returns the link. */
async function invite(email: string, role = 'member'): Promise<string> {
  const page = await org.open('owner', '/settings/members');
  await settled(page);
  await page.getByRole('button', { name: 'Invite member' }).click();
  await dialog(page).getByRole('textbox', { name: 'E-mail' }).fill(email);
  await dialog(page).getByRole('combobox', { name: 'Role' }).selectOption(role);
  await page.keyboard.press('Control+Enter');
  const link = await linkIn(page, /\/invite#/);
  expectNoFaults(page);
  return link;
}

const guest = (at: string, as: Cookie): Promise<Page> => openPage({ at, as });
const refusal = (page: Page): Locator => page.getByRole('alert');
const onlyRefused = (page: Page): void => {
  expect(faultsOf(page).filter((fault) => !/status of 4\d\d/.test(fault))).toEqual([]);
};

describe('an invite', () => {
  it('is accepted in a second browser, which then shows what the role may read', async () => {
    const { email, cookie } = await aStranger();
    const page = await guest(await invite(email, 'viewer'), cookie);
    await page.getByText(`You are invited to ${org.org_id}. You join it as ${email}.`).waitFor();
    // The token stays neither in the address nor in the history.
    expect(new URL(page.url()).hash).toBe('');
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Accept invite' }).press('Enter');
    await page.waitForURL((url) => url.pathname.startsWith(`/o/${org.org_id}`));
    await settled(page);
    const rail = page.getByRole('navigation', { name: 'Sections' });
    await rail.getByRole('link', { name: 'Agents' }).waitFor();
    expect(await rail.getByRole('link', { name: 'Traces' }).count()).toBe(0);
    expect(await members()).toContainEqual(expect.objectContaining({ email, role: 'viewer', status: 'active' }));
    expectNoFaults(page);
  });

  it('is kept over a login: a browser without a session logs in on the page and accepts', async () => {
    const { email, cookie } = await aStranger();
    const page = await openPage({ at: await invite(email), loggedIn: false });
    await page.getByText('Log in first, with the address that the mail was sent to.').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('textbox', { name: 'Token' }).fill(cookie.value);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Accept invite' }).click();
    await page.waitForURL((url) => url.pathname.startsWith(`/o/${org.org_id}`));
    expect(await members()).toContainEqual(expect.objectContaining({ email, status: 'active' }));
    onlyRefused(page);
  });

  it('of another person is refused in words and stays open for the person it is for', async () => {
    const invited = await aStranger();
    const other = await aStranger();
    const link = await invite(invited.email);
    const page = await guest(link, other.cookie);
    await page.getByRole('button', { name: 'Accept invite' }).click();
    await refusal(page).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    expect((await members()).map(({ email }) => email)).not.toContain(other.email);
    onlyRefused(page);
    const theirs = await guest(link, invited.cookie);
    await theirs.getByRole('button', { name: 'Accept invite' }).click();
    await theirs.waitForURL((url) => url.pathname.startsWith(`/o/${org.org_id}`));
    expectNoFaults(theirs);
  });

  it('that was withdrawn, or whose link is cut off, says so', async () => {
    const { email, cookie } = await aStranger();
    const link = await invite(email);
    const invited = (await members()).find((one) => one.email === email);
    await org.as('owner', 'DELETE', `/orgs/${org.org_id}/members/${invited?.user_id ?? ''}`);
    const page = await guest(link, cookie);
    await page.getByRole('button', { name: 'Accept invite' }).click();
    await refusal(page).waitFor();
    onlyRefused(page);
    const cut = await guest(link.slice(0, link.lastIndexOf('.')), cookie);
    await cut.getByText('This link is not complete.').waitFor();
    expect(await cut.getByRole('button').count()).toBe(0);
    expect(await axeViolations(cut)).toEqual([]);
    expectNoFaults(cut);
  });
});

describe('a transfer of ownership', () => {
  /** Offers the ownership to the admin, as the owner does, and returns the link. */
  async function offer(owner: Page): Promise<string> {
    const admin = (await members()).find(({ role }) => role === 'admin');
    await owner.getByRole('button', { name: 'Transfer ownership' }).click();
    await dialog(owner)
      .getByRole('combobox', { name: 'New owner' })
      .selectOption(admin?.user_id ?? '');
    await dialog(owner).getByRole('textbox').fill('Own organization');
    await dialog(owner).getByRole('button', { name: 'Offer ownership' }).click();
    return linkIn(owner, /\/transfer#/);
  }

  it('is accepted in a second browser, and both browsers then show the new roles', async () => {
    const owner = await org.open('owner', '/settings/members');
    await settled(owner);
    const link = await offer(owner);
    const page = await guest(link, org.portal('admin').cookie);
    await page.getByText('If you accept, the present owner becomes an admin.').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Accept ownership' }).click();
    await page.waitForURL((url) => url.pathname.startsWith(`/o/${org.org_id}`));
    await page.goto(`/o/${org.org_id}/settings/grants`);
    await page.getByRole('heading', { level: 1, name: 'Settings: Grants' }).waitFor();
    await page.getByRole('button', { name: 'Create grant' }).waitFor();
    await owner.goto(`/o/${org.org_id}/settings/members`);
    await settled(owner);
    expect(await owner.getByRole('button', { name: 'Transfer ownership' }).count()).toBe(0);
    expect((await members()).filter(({ role }) => role === 'owner')).toHaveLength(1);
    expectNoFaults(page);
    expectNoFaults(owner);
  });

  it('is refused to a member to whom it was not offered, and a used link is refused too', async () => {
    const owner = await org.open('owner', '/settings/members');
    await settled(owner);
    const link = await offer(owner);
    const other = await guest(link, org.portal('member').cookie);
    await other.getByRole('button', { name: 'Accept ownership' }).click();
    await refusal(other).waitFor();
    onlyRefused(other);
    const admin = org.portal('admin').cookie;
    const first = await guest(link, admin);
    await first.getByRole('button', { name: 'Accept ownership' }).click();
    await first.waitForURL((url) => url.pathname.startsWith(`/o/${org.org_id}`));
    const again = await guest(link, admin);
    await again.getByRole('button', { name: 'Accept ownership' }).click();
    await refusal(again).waitFor();
    onlyRefused(again);
  });
});

it.each(['/invite', '/transfer'])('the page %s fits a phone and the dark theme', async (path) => {
  const page = await openPage({
    at: `${path}#${org.org_id}.token`,
    context: { colorScheme: 'dark', viewport: { width: 320, height: 700 } },
  });
  await page.getByRole('button').first().waitFor();
  expect(await overflow(page)).toBe(0);
  expect(await axeViolations(page)).toEqual([]);
  expectNoFaults(page);
});
