// API keys and privacy in the browser: a key that is shown once, limited, rotated and revoked; rules of
// redaction that are tried on a text; and an erasure that runs to its end.
import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, faultsOf, overflow, settled } from './support/browser.ts';
import { OwnOrg, type Role } from './support/own_org.ts';

interface Key {
  id: string;
  name: string;
  key_prefix: string;
  scopes: string[];
  expires_at: string | null;
  requests_per_minute: number | null;
  capture: string;
}

/** Bound on an erasure, which waits for everything that was accepted before it. */
const ERASURE_MS_MAX = 180_000;
const HOSTILE = '<img src=x onerror=alert(1)>‮txt';
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
const keys = () => org.data<Key[]>('GET', `/orgs/${org.org_id}/api-keys`);
const keyOf = async (name: string): Promise<Key> => {
  const found = (await keys()).find((one) => one.name === name);
  if (found === undefined) throw new Error(`no key ${name}`);
  return found;
};

/** Returns the status of a read of the organization with a raw key. */
async function reads(raw_key: string): Promise<number> {
  const { url } = inject('portal');
  return (await fetch(`${url}/v1/traces?limit=1`, { headers: { authorization: `Bearer ${raw_key}` } })).status;
}

/** Closes the dialog that shows a key, and returns the key. */
async function takeKey(page: Page): Promise<string> {
  const raw_key = await dialog(page)
    .getByText(/^sk_svc_/)
    .textContent();
  const close = dialog(page).getByRole('button', { name: 'Close' });
  expect(await close.isDisabled()).toBe(true);
  await page.keyboard.press('Escape');
  expect(await dialog(page).count()).toBe(1);
  await dialog(page).getByRole('checkbox', { name: 'I have stored the key' }).check();
  await close.click();
  await dialog(page).waitFor({ state: 'hidden' });
  return raw_key ?? '';
}

describe('an API key', () => {
  it('is created by keys with the scopes of a preset, works, and is shown once', async () => {
    const page = await open('admin', '/settings/keys');
    await page.keyboard.press('n');
    await page.keyboard.type('nightly');
    await dialog(page).getByRole('button', { name: 'Read only' }).press('Enter');
    await dialog(page).getByText('changes nothing').waitFor();
    await dialog(page)
      .getByRole('checkbox', { name: /^traces:export/ })
      .press('Space');
    await dialog(page).getByText('Scopes of your own choice').waitFor();
    await dialog(page).getByText('Limits, expiry and labels').press('Enter');
    await dialog(page).getByRole('textbox', { name: 'Requests a minute' }).fill('30');
    await dialog(page).getByRole('combobox', { name: 'What the gateway stores' }).selectOption('usage');
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('Control+Enter');
    const raw_key = await takeKey(page);
    expect(await reads(raw_key)).toBe(200);
    const { key_prefix, scopes, requests_per_minute, capture } = await keyOf('nightly');
    expect(scopes).toContain('traces:read');
    expect(scopes).not.toContain('traces:export');
    expect({ requests_per_minute, capture }).toEqual({ requests_per_minute: 30, capture: 'usage' });
    await page
      .getByRole('row', { name: /nightly/ })
      .getByText(`${key_prefix}…`)
      .waitFor();

    await page.reload();
    await page.getByRole('row', { name: /nightly/ }).waitFor();
    await page.goBack();
    expect(await page.content()).not.toContain(raw_key);
    expectNoFaults(page);
  });

  it('is rotated: both keys work for a time, and the old one ends', async () => {
    const raw_key = await org
      .call('POST', `/orgs/${org.org_id}/api-keys`, { name: 'ci', scopes: ['traces:read'], requests_per_minute: 50 })
      .then(({ json }) => (json as { raw_key: string }).raw_key);
    const old = await keyOf('ci');
    const page = await open('owner', '/settings/keys');
    await page.getByRole('button', { name: 'Change ci' }).click();
    await page.getByRole('menuitem', { name: 'Rotate key' }).click();
    await dialog(page).getByRole('combobox').selectOption('7 days');
    await dialog(page).getByRole('button', { name: 'Create new key' }).click();
    const next = await takeKey(page);
    const after = await keys();
    const both = after.filter(({ name }) => name === 'ci');
    expect(both).toHaveLength(2);
    expect(both.map(({ scopes, requests_per_minute }) => [scopes, requests_per_minute])).toEqual([
      [['traces:read'], 50],
      [['traces:read'], 50],
    ]);
    const ends = Date.parse(both.find(({ id }) => id === old.id)?.expires_at ?? '') - Date.now();
    expect(Math.round(ends / 86_400_000)).toBe(7);
    expect(both.find(({ id }) => id !== old.id)?.expires_at).toBeNull();
    expect([await reads(raw_key), await reads(next)]).toEqual([200, 200]);

    await page.getByRole('row').filter({ hasText: 'until' }).getByRole('button', { name: 'Change ci' }).click();
    await page.getByRole('menuitem', { name: 'Revoke key' }).click();
    await dialog(page).getByText(`${old.key_prefix}…`).waitFor();
    await dialog(page).getByRole('button', { name: 'Revoke key' }).click();
    await eventually(async () => (await reads(raw_key)) === 401, { what: 'the end of the old key' });
    expect(await reads(next)).toBe(200);
    expectNoFaults(page);
  });

  it('of a hostile name is shown as text, and its limits are set', async () => {
    await org.call('POST', `/orgs/${org.org_id}/api-keys`, { name: HOSTILE, scopes: ['traces:read'] });
    const page = await open('admin', '/settings/keys');
    await page
      .getByRole('row')
      .filter({ hasText: '<img src=x onerror=alert(1)>‹202E›txt' })
      .getByRole('button')
      .click();
    await page.getByRole('menuitem', { name: 'Set limits' }).click();
    await dialog(page).getByRole('textbox', { name: 'Requests a minute' }).fill('12');
    await dialog(page).getByRole('button', { name: 'Save limits' }).click();
    await page.getByText('12 requests a minute').waitFor();
    expect(await overflow(page)).toBe(0);
    expectNoFaults(page);
  });

  it('cannot be changed by a member, who sees the list', async () => {
    const page = await open('member', '/settings/keys');
    await page.getByRole('row', { name: /tests/ }).waitFor();
    expect(await page.getByRole('button', { name: /Create key|^Change / }).count()).toBe(0);
    await page.getByText('Admins and owners may change this.').waitFor();
    expectNoFaults(page);
  });
});

describe('redaction', () => {
  it('is tried on a text before it is saved, and refused patterns are explained at their field', async () => {
    const page = await open('admin', '/settings/privacy');
    const result = page.getByRole('status', { name: 'Redacted test text' });
    await result.getByText('Write to [EMAIL]').waitFor();
    await page.getByRole('textbox', { name: 'Test text' }).fill('ann@example.com wrote about EMP-123456');
    await page.getByRole('checkbox', { name: 'E-mail addresses' }).uncheck();
    await result.getByText('ann@example.com wrote about EMP-123456').waitFor();
    await page.getByRole('button', { name: 'Add pattern' }).click();
    await page.getByRole('textbox', { name: 'Label 1' }).fill('EMPLOYEE');
    const pattern = page.getByRole('textbox', { name: 'Pattern 1' });
    await pattern.fill('EMP-(');
    await eventually(async () => (await pattern.getAttribute('aria-invalid')) === 'true', { what: 'the refusal' });
    await pattern.fill('EMP-[0-9]{6}');
    await result.getByText('ann@example.com wrote about [EMPLOYEE]').waitFor();
    await page.getByRole('checkbox', { name: 'Redact events before they are stored' }).check();
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('Control+Enter');
    await page.getByText('Saved the rules of redaction.').waitFor();
    expect(await org.data('GET', `/orgs/${org.org_id}/pii-policy`)).toEqual({
      enabled: true,
      kinds: ['phone', 'card', 'ip', 'ssn'],
      custom: [{ label: 'EMPLOYEE', pattern: 'EMP-[0-9]{6}' }],
      mode: 'redact',
    });
    expect(faultsOf(page).filter((fault) => !fault.includes('status of 422'))).toEqual([]);
  });
});

describe('an erasure', () => {
  it('asks for the value twice, shows its progress and leaves nothing', async () => {
    const trace_id = `run-${org.org_id}`;
    const event = {
      name: 'ask',
      outcome: 'success',
      duration_ms: 5,
      trace_id,
      attributes: { user_id: 'u_1234', prompt: 'the text of a person' },
    };
    await org.call('POST', `/orgs/${org.org_id}/ingest/custom`, { events: [event] });
    const stored = async (): Promise<boolean> => (await org.call('GET', `/v1/traces/${trace_id}`)).status === 200;
    await eventually(stored, { what: 'the trace', withinMs: 30_000 });

    const page = await open('owner', '/settings/privacy');
    await page.getByText('Nothing was erased').waitFor();
    await page.getByRole('button', { name: 'Erase a person' }).click();
    await dialog(page).getByRole('textbox', { name: 'Value', exact: true }).fill('u_1234');
    const again = dialog(page).getByRole('textbox', { name: 'Value again' });
    await again.fill('u_1235');
    const erase = dialog(page).getByRole('button', { name: 'Erase traces of u_1234' });
    expect(await erase.isDisabled()).toBe(true);
    await again.fill('u_1234');
    expect(await axeViolations(page)).toEqual([]);
    await erase.click();
    const row = page.getByRole('region', { name: 'Erasures' }).getByRole('row').nth(1);
    await row.getByText('Complete').waitFor({ timeout: ERASURE_MS_MAX });
    await row.getByText('matched traces: 1').waitFor();
    expect(await stored()).toBe(false);
    expect(page.url()).not.toContain('u_1234');
    expectNoFaults(page);
  });

  it('is shown to an admin, who cannot ask for one', async () => {
    const page = await open('admin', '/settings/privacy');
    await page.getByText('Nothing was erased').waitFor();
    expect(await page.getByRole('button', { name: 'Erase a person' }).count()).toBe(0);
    await page.getByText(/^Owners may change this/).waitFor();
    expectNoFaults(page);
  });
});
