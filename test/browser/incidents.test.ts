// Incidents in the browser: traffic opens one on the open page, it says what differs between its
// errors, leads to a comparison with a success, and is resolved; each role sees what it may.
import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { axeViolations, expectNoFaults, overflow, settled } from './support/browser.ts';
import { openIncident, OPENING } from './support/incidents.ts';
import { OwnOrg, type Role } from './support/own_org.ts';
import { expectWalk } from './support/roles.ts';

let org: OwnOrg;

beforeAll(async () => {
  org = await OwnOrg.make();
});

it('an incident that traffic opens appears on the open page, is compared with a success and resolved', async () => {
  const agent = `seller-${randomUUID()}`;
  const page = await org.open('member', `/incidents?agent_id=${agent}`);
  await page.getByText('No incident matches these filters', { exact: true }).waitFor();
  await openIncident(org, 'no seat in row #', agent);
  const rows = page.getByRole('grid', { name: 'Incidents' }).getByRole('row');
  await rows.getByText('no seat in row #').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'no seat in row #', level: 1 }).waitFor();
  await page.getByText(/no seat in row 10\d/).waitFor();
  await page.getByRole('list', { name: 'Newest traces of the incident' }).getByRole('listitem').first().waitFor();
  await settled(page);
  await page.keyboard.press('Shift+T');
  const table = page.getByRole('table');
  await table.getByRole('columnheader', { name: 'Of this incident' }).waitFor();
  await page.keyboard.press('r');
  await page.getByText('The incident is resolved.').waitFor();
  await page.getByText('Resolved', { exact: true }).first().waitFor();
  expect(await page.getByRole('button', { name: 'Resolve incident' }).count()).toBe(0);
  await page.keyboard.press('c');
  await page.waitForURL(/\/compare\//);
  expectNoFaults(page);
});

it('a person who resolves an incident that another person resolved is told by whom', async () => {
  const { incident_id } = await openIncident(org, 'card # declined', `payer-${randomUUID()}`);
  const page = await org.open('member', `/incidents/${incident_id}`);
  await page.getByRole('button', { name: 'Resolve incident' }).waitFor();
  // The stream would show the change, so the page is cut off from it.
  await page.route('**/v1/live**', (route) => route.abort());
  await page.reload();
  await page.getByRole('button', { name: 'Resolve incident' }).waitFor();
  await org.data('POST', `/v1/incidents/${incident_id}/resolve`);
  await page.keyboard.press('r');
  await page.getByText(/^The incident was already resolved by ak_/).waitFor();
});

it('an earlier incident of the same error stands on the page of the later one', async () => {
  const agent = `caller-${randomUUID()}`;
  const first = await openIncident(org, 'timeout after # ms', agent);
  await org.data('POST', `/v1/incidents/${first.incident_id}/resolve`);
  const second = await openIncident(org, 'timeout after # ms', agent);
  expect(second.incident_id).not.toBe(first.incident_id);
  const page = await org.open('member', `/incidents/${second.incident_id}`);
  const earlier = page.getByRole('list', { name: 'Other incidents of the cluster' }).getByRole('listitem');
  await earlier.getByRole('link', { name: `${OPENING} traces` }).click();
  await page.waitForURL(new RegExp(first.incident_id));
  expectNoFaults(page);
});

it('filters stand in the address, and Back restores them', async () => {
  const agent = `writer-${randomUUID()}`;
  await openIncident(org, 'disk # full', agent);
  const page = await org.open('member', `/incidents?agent_id=${agent}`);
  await page.getByText('1 incident', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Critical' }).click();
  await page.getByText('No incident matches these filters').waitFor();
  await page.goBack();
  await page.getByText('disk # full').waitFor();
  await page.getByRole('button', { name: 'Remove the filter agent_id' }).click();
  await page.waitForURL((url) => !url.search.includes('agent_id'));
  expectNoFaults(page);
});

it('errors and names are shown as they are, never as markup, and fit into 320 pixels', async () => {
  const hostile = `<img src=x onerror="document.title=1"> \u202Eevil {{x}} ${'w'.repeat(400)}`;
  const { incident_id } = await openIncident(org, hostile, `<b>agent</b> ${randomUUID()}`);
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await org.open('member', `/incidents/${incident_id}`, {
      context: { colorScheme, viewport: { width: 320, height: 700 } },
    });
    await page
      .getByText(/^<b>agent<\/b>/)
      .first()
      .waitFor();
    await settled(page);
    expect(await page.title()).not.toBe('1');
    expect(await page.getByRole('img', { name: 'x' }).count()).toBe(0);
    expect(await overflow(page)).toBe(0);
    expect(await axeViolations(page)).toEqual([]);
    expectNoFaults(page);
  }
});

it.each<Role>(['viewer', 'member', 'admin', 'owner'])('the list causes no refusal for a %s', async (role) => {
  await expectWalk(org, { role, path: '/incidents', may: role !== 'viewer', section: 'Incidents' });
});

it('an incident that does not exist is named as such', async () => {
  const page = await org.open('member', '/incidents/inc_0000000000000000');
  await page.getByText('No such thing: the incident').waitFor();
});
