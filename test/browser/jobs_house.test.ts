// The jobs of people who keep the house, each with at most the clicks and keys that it may take: to see at
// once what is broken, to let somebody in, to change a key, and to prove who changed what.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { expectNoFaults, openPage, settled } from './support/browser.ts';
import { Hands } from './support/hands.ts';
import { openIncident, OPENING } from './support/incidents.ts';
import { aStranger, OwnOrg } from './support/own_org.ts';

const rail = (page: Page) => page.getByRole('navigation', { name: 'Sections' });
/** The link of the incidents in the rail; its title counts those that are open. */
const incidentsLink = (page: Page) => rail(page).getByRole('link', { name: 'Incidents' });

/** Sends a trace, as Home leads to Start as long as there is none. */
async function withTrace(org: OwnOrg): Promise<void> {
  await org.data('POST', `/orgs/${org.org_id}/ingest/custom`, { events: [{ name: 'a run', outcome: 'success' }] });
  await eventually(async () => (await org.data<unknown[]>('GET', '/v1/traces?limit=1')).length === 1);
}

describe('whether something is broken now', () => {
  it('stands on Home and in the rail without a click, pushed when an incident is opened and resolved', async () => {
    const org = await OwnOrg.make();
    await withTrace(org);
    const page = await org.open('member', '');
    await settled(page);
    await page.getByText('Nothing: no open incident').waitFor();
    expect(await incidentsLink(page).getAttribute('title')).toBe('Incidents (g i)');
    const hands = new Hands(page);
    const { incident_id } = await openIncident(org, 'no seat in row #', `seller-${randomUUID()}`);
    const line = page.getByRole('listitem').filter({ hasText: 'no seat in row #' });
    await line.getByText(`${OPENING} traces`).waitFor();
    await page.getByRole('link', { name: /^Open incidents 1/ }).waitFor();
    await eventually(async () => (await incidentsLink(page).getAttribute('title')) === 'Incidents, 1 open (g i)');
    await org.data('POST', `/v1/incidents/${incident_id}/resolve`);
    await line.waitFor({ state: 'detached' });
    await eventually(async () => (await incidentsLink(page).getAttribute('title')) === 'Incidents (g i)');
    hands.expectAtMost({ clicks: 0, keys: 0 });
    expectNoFaults(page);
  });

  it('is asked for by no timer: the stream alone brings it', async () => {
    const org = await OwnOrg.make();
    await withTrace(org);
    const page = await org.open('member', '/me');
    await settled(page);
    await page.clock.install();
    await page.getByRole('link', { name: 'Home', exact: true }).click();
    await page.getByText('Nothing: no open incident').waitFor();
    await settled(page);
    let asked = 0;
    page.on('request', (request) => {
      if (new URL(request.url()).pathname === '/v1/incidents') asked += 1;
    });
    await page.clock.fastForward('10:00');
    await settled(page);
    expect(asked).toBe(0);
    await openIncident(org, 'no table for #', `waiter-${randomUUID()}`);
    await page.getByRole('listitem').filter({ hasText: 'no table for #' }).waitFor();
    expectNoFaults(page);
  });

  it('is counted in the rail of every page, also of a narrow rail and of the sheet of a phone', async () => {
    const org = await OwnOrg.make();
    await openIncident(org, 'no bed in room #', `host-${randomUUID()}`);
    const page = await org.open('member', '/prompts');
    await settled(page);
    await incidentsLink(page).getByText('1', { exact: true }).waitFor();
    await page.keyboard.press('[');
    await rail(page).getByTitle('Incidents, 1 open (g i)').getByText('1', { exact: true }).waitFor();
    await page.keyboard.press('[');
    const phone = await org.open('member', '/prompts', { context: { viewport: { width: 390, height: 800 } } });
    await phone.getByRole('button', { name: 'Sections' }).click();
    await incidentsLink(phone).getByText('1', { exact: true }).waitFor();
    expectNoFaults(page);
    expectNoFaults(phone);
  });
});

describe('the house', () => {
  interface Member {
    email: string;
    role: string;
    status: string;
  }
  interface Key {
    name: string;
    requests_per_minute: number | null;
  }

  it('lets somebody in with two clicks, who accepts in another browser with one', async () => {
    const org = await OwnOrg.make();
    const page = await org.open('owner', '/me');
    await settled(page);
    const hands = new Hands(page);
    await hands.click(page.getByRole('link', { name: 'Settings', exact: true }));
    await hands.click(page.getByRole('button', { name: 'Invite member' }));
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'E-mail' }).waitFor();
    const { email, cookie } = await aStranger();
    await hands.type(email);
    await hands.press('Enter');
    const link = new URL(await dialog.getByText(/\/invite#/).innerText());
    hands.expectAtMost({ clicks: 2, keys: 1 });
    const theirs = await openPage({ at: link.pathname + link.hash, as: cookie });
    const guest = new Hands(theirs);
    await guest.click(theirs.getByRole('button', { name: 'Accept invite' }));
    await theirs.waitForURL((url) => url.pathname.startsWith(`/o/${org.org_id}`));
    guest.expectAtMost({ clicks: 1, keys: 0 });
    const members = await org.data<Member[]>('GET', `/orgs/${org.org_id}/members`);
    expect(members).toContainEqual(expect.objectContaining({ email, role: 'member', status: 'active' }));
    expectNoFaults(page);
    expectNoFaults(theirs);
  });

  it('changes a key with three clicks', async () => {
    const org = await OwnOrg.make();
    const page = await org.open('owner', '/me');
    await settled(page);
    const hands = new Hands(page);
    await hands.click(page.getByRole('link', { name: 'Settings', exact: true }));
    await hands.click(page.getByRole('tab', { name: 'API keys' }));
    await hands.click(page.getByRole('button', { name: 'Change tests' }));
    // The first line of the menu has the focus, and the first field of the dialog.
    await hands.press('Enter');
    await page.getByRole('dialog').getByRole('textbox', { name: 'Models' }).waitFor();
    await hands.press('Tab');
    await hands.type('300');
    await hands.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page
      .getByRole('row', { name: /^tests/ })
      .getByText('300 requests a minute')
      .waitFor();
    hands.expectAtMost({ clicks: 3, keys: 3 });
    const keys = await org.data<Key[]>('GET', `/orgs/${org.org_id}/api-keys`);
    expect(keys).toContainEqual(expect.objectContaining({ name: 'tests', requests_per_minute: 300 }));
    expectNoFaults(page);
  });

  it('proves who changed what with three clicks, and every line leads to the thing that it names', async () => {
    const org = await OwnOrg.make();
    const root = `/orgs/${org.org_id}`;
    const url = 'https://example.com/hook';
    const { webhook_id } = await org.data<{ webhook_id: string }>('POST', `${root}/webhooks`, {
      url,
      events: ['trace.completed'],
      description: 'before',
    });
    await org.data('PATCH', `${root}/webhooks/${webhook_id}`, { description: 'after' });
    await org.data('POST', '/v1/prompts', { name: 'answer', template: 'Answer {{question}}' });
    await org.data('POST', '/v1/datasets', { name: 'set', version: '1', items: [{ input: { text: 'Hello' } }] });
    await org.data('POST', '/v1/views', { name: 'failed', page: 'traces', query: 'outcome=error', scope: 'org' });
    await org.data('POST', '/v1/annotation-queues', { name: 'queue', scores: [{ name: 'good', type: 'boolean' }] });
    await org.data('POST', '/v1/monitors', {
      name: 'failures',
      query: { view: 'spans', measures: [{ measure: 'errors' }] },
      window_minutes: 60,
      threshold: { above: 3 },
    });
    await org.data('PUT', `${root}/budget`, { tokens: { soft_limit: 500_000, hard_limit: 1_000_000 } });
    await eventually(
      async () => {
        const records = await org.data<{ action: string }[]>('GET', `${root}/audit-log?limit=200`);
        const actions = new Set(records.map(({ action }) => action));
        return ['webhook.update', 'annotation_queue.create', 'monitor.create', 'view.create'].every((one) =>
          actions.has(one),
        );
      },
      { what: 'the records of the changes' },
    );
    const page = await org.open('owner', '/me');
    await settled(page);
    const hands = new Hands(page);
    await hands.click(page.getByRole('link', { name: 'Audit', exact: true }));
    const grid = page.getByRole('grid', { name: 'Audit log' });
    await hands.click(grid.getByText('webhook.update'));
    const record = page.getByRole('dialog', { name: 'webhook.update' });
    await record.getByRole('row', { name: /description before after/ }).waitFor();
    await record.getByText(/^ak_|^key_/).waitFor();
    await hands.click(record.getByRole('link', { name: webhook_id }));
    await page.getByText('after', { exact: true }).waitFor();
    hands.expectAtMost({ clicks: 3, keys: 0 });

    await page.goto(`/o/${org.org_id}/audit`);
    await settled(page);
    const lines = grid.getByRole('row').filter({ has: page.getByRole('gridcell') });
    const links = await lines.getByRole('link').evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''));
    expect(links).toHaveLength(await lines.count());
    for (const href of new Set(links)) {
      await page.goto(href);
      await settled(page);
      expect(await page.getByText('No such thing').count(), href).toBe(0);
      expect(await page.getByRole('alert').count(), href).toBe(0);
    }
    expectNoFaults(page);
  });
});
