// Members, invites, roles and the transfer of ownership in the browser, each as somebody of the role
// that may do it. Each test has an organization of its own.
import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, faultsOf, settled } from './support/browser.ts';
import { OwnOrg, type Role } from './support/own_org.ts';

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

async function open(role: Role, path: string): Promise<Page> {
  const page = await org.open(role, path);
  await settled(page);
  return page;
}
const dialog = (page: Page) => page.getByRole('dialog');
const members = () => org.data<Member[]>('GET', `/orgs/${org.org_id}/members`);
const memberOf = async (role: Role): Promise<Member> => {
  const found = (await members()).find((one) => one.role === role && one.status === 'active');
  if (found === undefined) throw new Error(`no ${role}`);
  return found;
};

describe('members', () => {
  it('are invited with two clicks from Home, and the link of the invite is shown once', async () => {
    const page = await open('owner', '');
    await page.getByRole('link', { name: 'Settings', exact: true }).click();
    await page.getByRole('button', { name: 'Invite member' }).click();
    await page.getByRole('textbox', { name: 'E-mail' }).fill('new@example.com');
    await dialog(page).getByRole('combobox', { name: 'Role' }).selectOption('viewer');
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('textbox', { name: 'E-mail' }).press('Enter');
    const stored = dialog(page).getByRole('checkbox', { name: 'I have stored the link' });
    await stored.waitFor();
    const close = dialog(page).getByRole('button', { name: 'Close' });
    expect(await close.isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    expect(await dialog(page).count()).toBe(1);
    await stored.check();
    await close.click();
    await dialog(page).waitFor({ state: 'hidden' });
    const row = page.getByRole('row', { name: /new@example\.com/ });
    await row.getByText('Invited').waitFor();
    expect(await members()).toContainEqual(
      expect.objectContaining({ email: 'new@example.com', role: 'viewer', status: 'invited' }),
    );

    await row.getByRole('button', { name: 'Change new@example.com' }).click();
    await page.getByRole('menuitem', { name: 'Withdraw invite' }).click();
    await dialog(page).getByRole('button', { name: 'Withdraw invite' }).click();
    await row.waitFor({ state: 'detached' });
    expect((await members()).map(({ email }) => email)).not.toContain('new@example.com');
    expectNoFaults(page);
  });

  it('get another role and are removed by keys alone', async () => {
    const viewer = await memberOf('viewer');
    const page = await open('owner', '/settings/members');
    const row = page.getByRole('row', { name: new RegExp(viewer.email) });
    await row.getByRole('button').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Change role' }).press('Enter');
    await dialog(page).getByRole('combobox', { name: 'Role' }).selectOption('member');
    await page.keyboard.press('Control+Enter');
    await dialog(page).waitFor({ state: 'hidden' });
    await row.getByRole('cell', { name: 'member', exact: true }).waitFor();
    expect((await members()).find(({ user_id }) => user_id === viewer.user_id)?.role).toBe('member');

    await row.getByRole('button').focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await dialog(page).getByText('sessions and API keys of this member stop').waitFor();
    await page.keyboard.press('Control+Enter');
    await row.waitFor({ state: 'detached' });
    expect((await members()).map(({ user_id }) => user_id)).not.toContain(viewer.user_id);
    expectNoFaults(page);
  });

  it('keep the last owner, and the page says so', async () => {
    const page = await open('owner', '/settings/members?role=owner');
    await page.getByText('Last owner').waitFor();
    await page.getByText('Cannot be demoted or removed').waitFor();
    expect(await page.getByRole('region', { name: 'Members and invites' }).getByRole('button').count()).toBe(0);
    expectNoFaults(page);
  });

  it('show the refusal of an address that is a member already', async () => {
    const { email } = await memberOf('admin');
    const page = await open('admin', '/settings/members');
    await page.keyboard.press('i');
    await page.getByRole('textbox', { name: 'E-mail' }).fill(email);
    expect(await dialog(page).getByRole('option').allTextContents()).toEqual(['viewer', 'member', 'admin']);
    await page.keyboard.press('Enter');
    await dialog(page).getByRole('alert').waitFor();
    expect(faultsOf(page).filter((fault) => !fault.includes('status of 409'))).toEqual([]);
  });
});

describe('the ownership', () => {
  it('is offered to a member by typing the name of the organization, and withdrawn', async () => {
    const admin = await memberOf('admin');
    const page = await open('owner', '/settings/members');
    await page.getByRole('button', { name: 'Transfer ownership' }).click();
    await dialog(page).getByRole('combobox', { name: 'New owner' }).selectOption(admin.user_id);
    const offer = dialog(page).getByRole('button', { name: 'Offer ownership' });
    expect(await offer.isDisabled()).toBe(true);
    await dialog(page).getByRole('textbox').fill('Own organization');
    await offer.click();
    await dialog(page).getByRole('checkbox').check();
    await dialog(page).getByRole('button', { name: 'Close' }).click();
    await page.getByText('The ownership is offered to').waitFor();
    const path = `/orgs/${org.org_id}/transfer`;
    expect(await org.data('GET', path)).toMatchObject({ status: 'pending', new_owner_user_id: admin.user_id });

    await page.getByRole('button', { name: 'Withdraw transfer' }).click();
    await dialog(page).getByRole('button', { name: 'Withdraw transfer' }).click();
    await eventually(async () => (await org.data<{ status: string }>('GET', path)).status === 'cancelled', {
      what: 'the end of the transfer',
    });
    await page.getByText('No transfer is pending.').waitFor();
    expectNoFaults(page);
  });
});

describe('settings', () => {
  it('show each role what it may read and change, and cause no 403', async () => {
    const shown: Record<string, string[]> = {};
    for (const role of ['viewer', 'member', 'admin', 'owner'] as const) {
      const page = await open(role, '/settings');
      const tabs = page.getByRole('tab');
      shown[role] = await tabs.allTextContents();
      for (const tab of await tabs.all()) {
        await tab.click();
        await settled(page);
      }
      expectNoFaults(page);
      await page.context().close();
    }
    const common = ['Members', 'Roles', 'API keys', 'Policy'];
    expect(shown).toEqual({
      viewer: [...common, 'Plan'],
      member: [...common, 'Retention', 'Sampling', 'Plan'],
      admin: [...common, 'Privacy', 'Retention', 'Sampling', 'Plan'],
      owner: ['Members', 'Roles', 'API keys', 'Grants', 'Policy', 'Privacy', 'Retention', 'Sampling', 'Plan'],
    });
  });

  it('show the permissions of each role as the API states them', async () => {
    const page = await open('member', '/settings/roles');
    const row = page.getByRole('row', { name: /Erase the data of a person/ });
    await row.waitFor();
    expect(await row.getByText('yes', { exact: true }).count()).toBe(1);
    expect(await page.getByRole('row').count()).toBe(
      1 + (await org.data<unknown[]>('GET', `/orgs/${org.org_id}/permissions`)).length,
    );
    expectNoFaults(page);
  });

  it('are found in the palette', async () => {
    const page = await open('admin', '');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Command, page or id' }).waitFor();
    await page.keyboard.type('settings: ro');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Settings: Roles' }).waitFor();
    expectNoFaults(page);
  });
});
