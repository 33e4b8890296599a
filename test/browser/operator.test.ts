// The operator's pages: their login, and each thing that the operator does there, against the service itself.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { deadEvent, deadMail } from '../support/dead_letters.ts';
import { eventually } from '../support/wait.ts';
import { api, axeViolations, expectNoFaults, faultsOf, openPage, overflow, settled } from './support/browser.ts';
import { pressSequence } from './support/hands.ts';
import { operatorPage, withLog } from './support/operator.ts';

const HOSTILE = `<img src=x onerror="document.title='run'"> \u202eabc ${'w'.repeat(2000)}`;

/** A window in which a table shows every row: organizations are sorted by random ids, and other tests make some, too. */
const EVERY_ROW = { width: 1440, height: 4000 };

const pathOf = (page: Page): string => new URL(page.url()).pathname;

async function newOrg(name: string): Promise<string> {
  const { url, admin_token } = inject('portal');
  const answer = await fetch(`${url}/admin/orgs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin_token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name, plan_name: 'pro', owner: { user_id: 'user_1', email: 'owner@example.com' } }),
  });
  return ((await answer.json()) as { data: { org_id: string } }).data.org_id;
}

beforeAll(async () => {
  await newOrg(HOSTILE.slice(0, 190));
  await withLog(async (log) => {
    await deadEvent(log, { org_id: inject('portal').org_id, trace_id: 'dead-hostile', detail: HOSTILE });
    await deadMail(log);
  });
});

it('the operator token opens the pages, another text does not, and logging out closes them', async () => {
  const page = await openPage({ at: '/operator/jobs', loggedIn: false });
  const field = page.getByLabel('Operator token');
  await field.fill('sk_svc_not_a_token');
  await page.keyboard.press('Enter');
  await page.getByText('This is an API key').waitFor();
  await field.fill('not-the-token');
  await page.keyboard.press('Enter');
  await page.getByText('The operator token is needed').waitFor();
  await field.fill(inject('portal').admin_token);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor();
  // The session of the operator is no session of a person.
  const cookies = await page.context().cookies();
  expect(cookies.map(({ name }) => name)).not.toContain('svc_session');
  await page.getByRole('button', { name: 'Log out' }).click();
  await field.waitFor();
  expect((await page.context().cookies(`${inject('portal').url}/admin`)).length).toBe(0);
  expect(faultsOf(page).filter((line) => !line.includes('401'))).toEqual([]);
});

it('creates an organization, shows its first key once, changes its plan and deletes it', async () => {
  const name = `Shop ${randomUUID().slice(0, 8)}`;
  const page = await operatorPage('orgs');
  await settled(page);
  await page.keyboard.press('n');
  const dialog = page.getByRole('dialog', { name: 'Create organization' });
  await dialog.getByLabel('Name').fill(name);
  await dialog.getByLabel('Mail address of the owner').fill('no-address');
  await dialog.getByLabel('User id of the owner').fill('user_shop');
  await page.keyboard.press('Control+Enter');
  await dialog.getByText('Invalid email', { exact: false }).waitFor();
  await dialog.getByLabel('Mail address of the owner').fill('shop@example.com');
  await page.keyboard.press('Control+Enter');

  const form = page.getByRole('dialog', { name });
  await form.getByRole('button', { name: 'Create API key' }).click();
  await page.getByRole('button', { name: 'Create key' }).click();
  const secret = page.getByRole('dialog', { name: `API key of ${name}` });
  const key = await secret.locator('code').first().innerText();
  expect(key).toMatch(/^sk_svc_/);
  expect(await secret.getByRole('button', { name: 'Close' }).isDisabled()).toBe(true);
  await page.keyboard.press('Escape');
  await secret.getByRole('checkbox').check();
  await secret.getByRole('button', { name: 'Close' }).click();
  const org_id = new URL(page.url()).searchParams.get('org') ?? '';
  const { url } = inject('portal');
  const seen = await fetch(`${url}/v1/traces`, { headers: { 'x-org-api-key': key, 'x-org-id': org_id } });
  expect(seen.status).toBe(200);

  await form.getByLabel('Plan').selectOption('enterprise');
  await form.getByLabel('Ingest requests a minute').fill('600');
  await form.getByLabel('API requests a minute').fill('300');
  await form.getByLabel('Burst').fill('50');
  await form.getByRole('button', { name: 'Save organization' }).click();
  await page.setViewportSize(EVERY_ROW);
  const row = page.getByRole('row').filter({ hasText: name });
  await row.filter({ hasText: 'enterprise' }).waitFor();

  await row.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete organization' }).click();
  const removal = page.getByRole('dialog', { name: `Delete ${name}` });
  expect(await removal.getByRole('button', { name: 'Delete organization' }).isDisabled()).toBe(true);
  await removal.getByLabel(`Type ${org_id} to delete it`).fill(org_id);
  await page.keyboard.press('Enter');
  await row.waitFor({ state: 'detached' });
  expect(faultsOf(page).filter((line) => !line.includes('422'))).toEqual([]);
});

it('runs a job as of another time and shows its result and its new last run', async () => {
  const page = await operatorPage('jobs');
  await settled(page);
  await page.getByRole('button', { name: 'Run anomalies' }).click();
  const dialog = page.getByRole('dialog', { name: 'Run anomalies' });
  await dialog.getByLabel('As of (UTC)').fill('2026-06-01T00:00');
  await page.keyboard.press('Enter');
  await dialog.getByRole('status').getByText('anomalies is done').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  const row = page.getByRole('row').filter({ hasText: 'anomalies' });
  expect(await row.innerText()).toContain('every hour at :07');
  expect(await row.innerText()).toContain('done');
  expectNoFaults(page);
});

it('shows the checks, the worker, its partitions, the streams and the store', async () => {
  const page = await operatorPage('pipeline');
  await settled(page);
  expect(await page.getByRole('list', { name: 'Checks' }).innerText()).toContain('ClickHouse: ok');
  const partitions = page.getByRole('region', { name: 'Partitions' }).getByRole('row');
  expect(await partitions.count()).toBeGreaterThan(1);
  expect(await partitions.filter({ hasText: 'unowned' }).count()).toBe(0);
  await page.getByRole('region', { name: 'Streams' }).getByText('INGEST').waitFor();
  await page.getByText('Free disk').waitFor();
  expectNoFaults(page);
});

it('reads a dead letter, replays its event, which lands, and deletes the letter of a mail', async () => {
  const { org_id } = inject('portal');
  const trace_id = `dead-${randomUUID().slice(0, 8)}`;
  await withLog((log) => deadEvent(log, { org_id, trace_id, detail: `cannot decode ${trace_id}` }));
  const page = await operatorPage(`dead-letters?org_id=${org_id}`);
  await settled(page);
  await page.getByRole('row').filter({ hasText: trace_id }).click();
  const letter = page.getByRole('dialog');
  expect(await letter.getByLabel('Body', { exact: true }).innerText()).toContain(trace_id);
  await letter.getByRole('button', { name: 'Replay event' }).click();
  await page.getByRole('row').filter({ hasText: trace_id }).waitFor({ state: 'detached' });
  await eventually(async () => (await api(`/v1/traces/${trace_id}`).catch(() => null)) !== null, {
    what: 'the replayed trace',
  });

  await page.getByLabel('Organization').fill('');
  await page.getByLabel('Stage').fill('mail');
  await page.keyboard.press('Enter');
  const mail = page.getByRole('row').filter({ hasText: '550 no such mailbox' }).first();
  await mail.click();
  expect(await letter.getByRole('button', { name: 'Replay event' }).count()).toBe(0);
  await letter.getByRole('button', { name: 'Delete letter' }).click();
  await letter.getByRole('button', { name: 'Delete it: the event is lost' }).click();
  await page.getByText('The dead letter is deleted.').waitFor();
  expectNoFaults(page);
});

it('creates an analyst, shows the password once, and deletes the analyst', async () => {
  const page = await operatorPage(`analysts?org=${inject('portal').org_id}`);
  await settled(page);
  const name = `reports ${randomUUID().slice(0, 8)}`;
  await page.getByRole('button', { name: 'Create analyst' }).first().click();
  await page.getByRole('dialog').getByLabel('Name').fill(name);
  await page.keyboard.press('Enter');
  const secret = page.getByRole('dialog', { name: /^Password of / });
  await secret.getByRole('checkbox').check();
  await secret.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: `Delete ${name}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete analyst' }).click();
  await page.getByRole('button', { name: `Delete ${name}` }).waitFor({ state: 'detached' });
  expectNoFaults(page);
});

it('reprices the calls of an organization and says how many changed', async () => {
  const page = await operatorPage(`repricing?org=${inject('portal').org_id}`);
  await settled(page);
  await page.getByRole('button', { name: 'Reprice calls' }).click();
  await page.getByRole('heading', { name: 'Result' }).waitFor();
  expect(await page.getByText('Calls checked').count()).toBe(1);
  expectNoFaults(page);
});

it('a session that ended in the middle of a form keeps what was typed and saves it after the login', async () => {
  const org_id = await newOrg(`Kept ${randomUUID().slice(0, 8)}`);
  const page = await operatorPage(`orgs?org=${org_id}`);
  const form = page.getByRole('dialog').first();
  await form.getByLabel('Name').fill('Typed before the end');
  await page.context().clearCookies();
  await form.getByRole('button', { name: 'Save organization' }).click();
  const login = page.getByRole('dialog', { name: "The operator's session has ended" });
  await login.getByLabel('Operator token').fill(inject('portal').admin_token);
  await page.keyboard.press('Enter');
  await page.getByText('Typed before the end is saved.').waitFor();
  await page.setViewportSize(EVERY_ROW);
  await page.getByRole('row').filter({ hasText: 'Typed before the end' }).waitFor();
  expect(faultsOf(page).filter((line) => !line.includes('401'))).toEqual([]);
});

it('g and a letter go to another page of the operator, and ? lists the keys', async () => {
  const page = await operatorPage('orgs');
  await settled(page);
  await pressSequence(page, 'g', 'p');
  await page.getByRole('heading', { level: 1, name: 'Pipeline' }).waitFor();
  expect(pathOf(page)).toBe('/operator/pipeline');
  await page.keyboard.press('?');
  expect(await page.getByRole('dialog').innerText()).toContain('Go to Dead letters');
  expectNoFaults(page);
});

describe.each([
  'orgs',
  'orgs?form=new',
  'jobs',
  'pipeline',
  'dead-letters',
  'dead-letters?stage=none',
  'analysts',
  'repricing',
])('the page /operator/%s', (at) => {
  it.each(['light', 'dark'] as const)('meets WCAG 2.2 AA in the %s theme, without errors', async (colorScheme) => {
    const page = await operatorPage(at, { context: { colorScheme } });
    await settled(page);
    expect(await axeViolations(page)).toEqual([]);
    expect(await page.title()).not.toContain('run');
    expectNoFaults(page);
  });

  it('has one first heading and does not scroll sideways at 320 pixels', async () => {
    const page = await operatorPage(at, { context: { viewport: { width: 320, height: 700 } } });
    await settled(page);
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    expect(await overflow(page)).toBe(0);
    expectNoFaults(page);
  });
});
