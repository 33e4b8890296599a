// Webhooks in the browser: an endpoint is created with a secret that is shown once, tested with the
// answer beside the button, changed, and its undelivered events are replayed. Only admins and owners
// see any of it.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Receiver, signersOf, startReceiver, status } from '../support/receiver.ts';
import { axeViolations, expectNoFaults, overflow, settled } from './support/browser.ts';
import { OwnOrg, type Role } from './support/own_org.ts';
import { expectWalk } from './support/roles.ts';

let org: OwnOrg;
let receiver: Receiver;
let made = 0;

beforeAll(async () => {
  [org, receiver] = await Promise.all([OwnOrg.make(), startReceiver()]);
});
afterAll(() => receiver.close());

interface Endpoint {
  webhook_id: string;
  url: string;
  path: string;
}

/** Creates an endpoint at the receiver. */
async function anEndpoint(more: object = {}): Promise<Endpoint> {
  const path = `/hook-${++made}-${Date.now()}`;
  const body = { url: receiver.url + path, events: ['trace.completed'], ...more };
  const { webhook_id } = await org.data<{ webhook_id: string }>('POST', `/orgs/${org.org_id}/webhooks`, body);
  return { webhook_id, url: body.url, path };
}

it('an endpoint is created by keys, its secret is shown once, and a test event is verified with it', async () => {
  const page = await org.open('admin', '/webhooks');
  await page.getByRole('button', { name: 'Create endpoint' }).waitFor();
  await page.keyboard.press('n');
  const dialog = page.getByRole('dialog', { name: 'Create endpoint' });
  const path = `/made-${Date.now()}`;
  await dialog.getByRole('textbox', { name: 'Address' }).fill(receiver.url + path);
  await dialog.getByRole('checkbox', { name: 'incident.created' }).check();
  await dialog.getByText('A new cluster of failing traces was found').click();
  await dialog.getByText('trace_count', { exact: true }).first().waitFor();
  await page.keyboard.press('Control+Enter');
  const secretDialog = page.getByRole('dialog', { name: 'Signing secret of the endpoint' });
  const secret = await secretDialog.locator('code').innerText();
  expect(secret).toMatch(/^whsec_/);
  await page.keyboard.press('Escape');
  await secretDialog.getByRole('checkbox', { name: 'I have stored the secret' }).check();
  await secretDialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Send test event' }).waitFor();
  expect(await page.content()).not.toContain(secret);
  await page.keyboard.press('t');
  await page.getByText(/^Status 200 after/).waitFor();
  const [got] = receiver.at(path);
  expect(got === undefined ? [] : signersOf(got, [secret])).toEqual([secret]);
  await page.getByRole('grid', { name: 'Attempts' }).getByText('webhook.test').waitFor();
  expectNoFaults(page);
});

it('the rule that refuses an address stands at its field', async () => {
  const page = await org.open('admin', '/webhooks');
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  const dialog = page.getByRole('dialog', { name: 'Create endpoint' });
  const address = dialog.getByRole('textbox', { name: 'Address' });
  await address.fill('http://example.com/hook');
  await dialog.getByRole('checkbox', { name: 'incident.created' }).check();
  await page.keyboard.press('Control+Enter');
  await address.and(page.locator('[aria-invalid]')).waitFor();
  expect(await address.inputValue()).toBe('http://example.com/hook');
});

it('attempts are filtered by outcome and event in the address, and one opens with its answer', async () => {
  const { webhook_id, path } = await anEndpoint();
  receiver.behave(path, status(404));
  const page = await org.open('admin', `/webhooks/${webhook_id}`);
  await page.getByText('No attempts in the last 30 days').waitFor();
  await page.keyboard.press('t');
  await page.getByText(/^Status 404 after/).waitFor();
  await page.getByRole('button', { name: 'Delivered', exact: true }).click();
  await page.getByText('No attempt matches these filters').waitFor();
  await page.getByRole('button', { name: 'Refused', exact: true }).click();
  await page.getByText('1 attempt in 30 days').waitFor();
  expect(new URL(page.url()).searchParams.get('outcome')).toBe('failed');
  await page.getByRole('grid', { name: 'Attempts' }).getByText('webhook.test').click();
  const dialog = page.getByRole('dialog', { name: 'webhook.test' });
  await dialog.getByText('Status 404').waitFor();
  await dialog.getByRole('button', { name: 'Show all attempts of this event' }).click();
  await page.getByRole('button', { name: 'Show all events' }).waitFor();
  expectNoFaults(page);
});

it('an endpoint is edited, gets another secret, is disabled, enabled and deleted', async () => {
  const { webhook_id, url } = await anEndpoint({ description: 'first words' });
  const page = await org.open('admin', `/webhooks/${webhook_id}`);
  await page.getByText('first words').waitFor();
  await page.keyboard.press('e');
  const dialog = page.getByRole('dialog', { name: 'Edit endpoint' });
  await dialog.getByRole('textbox', { name: 'Description (optional)' }).fill('second words');
  await dialog.getByRole('button', { name: 'Save endpoint' }).click();
  await page.getByText('second words').waitFor();
  const choose = async (action: string): Promise<void> => {
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: action }).click();
  };
  await choose('Rotate secret …');
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate secret' }).click();
  const secret = page.getByRole('dialog', { name: 'New signing secret of the endpoint' });
  await secret.getByText(/also signed with the previous secret/).waitFor();
  await secret.getByRole('checkbox').check();
  await secret.getByRole('button', { name: 'Close' }).click();
  await choose('Disable endpoint …');
  await page.getByRole('dialog').getByRole('button', { name: 'Disable endpoint' }).click();
  await page.getByRole('button', { name: 'Enable endpoint' }).click();
  await page.getByRole('button', { name: 'Send test event' }).waitFor();
  await choose('Delete endpoint …');
  const confirm = page.getByRole('dialog', { name: `Delete ${url}` });
  expect(await axeViolations(page)).toEqual([]);
  await confirm.getByRole('button', { name: 'Delete endpoint' }).click();
  await page.waitForURL(/\/webhooks$/);
  expect((await org.call('GET', `/orgs/${org.org_id}/webhooks/${webhook_id}`)).status).toBe(404);
  expectNoFaults(page);
});

it.each([
  ['/webhooks', 'viewer'],
  ['/webhooks', 'member'],
  ['/webhooks/dead-letters', 'member'],
  ['/webhooks', 'admin'],
  ['/webhooks/dead-letters', 'admin'],
  ['/webhooks', 'owner'],
] as [string, Role][])('%s causes no refusal for a %s', async (path, role) => {
  await expectWalk(org, { role, path, may: role === 'admin' || role === 'owner', section: 'Webhooks' });
});

const expectAccessible = async (page: Page): Promise<void> => {
  await settled(page);
  expect(await overflow(page)).toBe(0);
  expect(await axeViolations(page)).toEqual([]);
  expectNoFaults(page);
};

it.each(['light', 'dark'] as const)(
  'every part of an endpoint is accessible in the %s theme at 320 pixels',
  async (colorScheme) => {
    const description = `<img src=x onerror="document.title=1"> \u202Eevil ${'w'.repeat(300)}`;
    const { webhook_id } = await anEndpoint({ description });
    const context = { colorScheme, viewport: { width: 320, height: 700 } };
    for (const path of [
      '',
      `/${webhook_id}`,
      `/${webhook_id}?tab=letters`,
      `/${webhook_id}?tab=events`,
      `/${webhook_id}?tab=verify`,
    ]) {
      const page = await org.open('admin', `/webhooks${path}`, { context });
      await expectAccessible(page);
      expect(await page.title()).not.toBe('1');
      await page.close();
    }
  },
);
