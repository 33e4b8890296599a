// The audit log and the jobs in the browser: a change is found by its action and its thing, opens with
// its fields before and after, and is exported; a job shows its progress and its result.
import { readFile } from 'node:fs/promises';
import { beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, overflow, settled } from './support/browser.ts';
import { OwnOrg, type Role } from './support/own_org.ts';
import { expectWalk } from './support/roles.ts';

let org: OwnOrg;
let webhook_id = '';
const HOSTILE = `<img src=x onerror="document.title=1"> \u202Eevil ${'w'.repeat(100)}`;

beforeAll(async () => {
  org = await OwnOrg.make();
  const endpoint = { url: 'https://example.com/hook', events: ['trace.completed'], description: 'first words' };
  const root = `/orgs/${org.org_id}/webhooks`;
  ({ webhook_id } = await org.data<{ webhook_id: string }>('POST', root, endpoint));
  await org.data('PATCH', `${root}/${webhook_id}`, { description: HOSTILE });
  await org.data('POST', '/v1/prompts', { name: 'answer', template: 'Answer {{question}}' });
  await eventually(
    async () =>
      (await org.data<unknown[]>('GET', `/orgs/${org.org_id}/audit-log?target_id=${webhook_id}`)).length === 2,
    { what: 'the records of the endpoint' },
  );
});

it('a change is found by its thing, opens before and after, and leads to the thing', async () => {
  const page = await org.open('admin', `/audit?target_id=${webhook_id}`);
  await page.getByText('2 changes', { exact: true }).waitFor();
  const rows = page.getByRole('grid', { name: 'Audit log' }).getByRole('row');
  await rows.getByText('webhook.update').click();
  const dialog = page.getByRole('dialog', { name: 'webhook.update' });
  await dialog.getByRole('row', { name: /description first words/ }).waitFor();
  expect(await axeViolations(page)).toEqual([]);
  expect(await page.title()).not.toBe('1');
  await dialog.getByRole('link', { name: webhook_id }).click();
  await page.waitForURL(new RegExp(`/webhooks/${webhook_id}`));
  expectNoFaults(page);
});

it('filters by action and person stand in the address, with the actions of the API as suggestions', async () => {
  const page = await org.open('admin', '/audit');
  await settled(page);
  await page.keyboard.press('/');
  await eventually(async () => (await page.locator('datalist option').count()) > 20, { what: 'the suggestions' });
  await page.getByRole('combobox', { name: 'Action' }).fill('prompt.create');
  await page.getByText('1 change', { exact: true }).waitFor();
  expect(new URL(page.url()).searchParams.get('action')).toBe('prompt.create');
  await page.getByRole('textbox', { name: 'Id of the person or key' }).fill('nobody');
  await page.getByText('No change matches these filters in this time').waitFor();
  await page.getByRole('button', { name: 'Show all changes' }).click();
  await page.getByRole('grid', { name: 'Audit log' }).getByText('webhook.create').waitFor();
  expectNoFaults(page);
});

it('the records of the list are exported as one JSON object a line', async () => {
  const page = await org.open('owner', `/audit?target_id=${webhook_id}`);
  await page.getByText('2 changes', { exact: true }).waitFor();
  const [file] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Shift+E')]);
  const lines = (await readFile(await file.path(), 'utf8')).trimEnd().split('\n');
  const actions = lines.map((line) => (JSON.parse(line) as { action: string }).action);
  expect(actions).toEqual(['webhook.update', 'webhook.create']);
  expectNoFaults(page);
});

it('a job that an owner started is listed and shows its result', async () => {
  const day = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10);
  const page = await org.open('owner', '/jobs');
  await settled(page);
  const started = await page.evaluate(
    async ([id, since]) => {
      const answer = await fetch(`/orgs/${id}/cold-storage/restore`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-org-id': id },
        body: JSON.stringify({ since, until: since }),
      });
      return [answer.status, await answer.text()] as const;
    },
    [org.org_id, day] as const,
  );
  expect(started).toEqual([202, expect.any(String)]);
  const grid = page.getByRole('grid', { name: 'Jobs' });
  await grid.getByText('Restore from cold storage').first().click();
  await page.getByText(/^(Complete|Failed)$/).waitFor();
  await page.getByRole('heading', { name: 'Restore from cold storage', level: 1 }).waitFor();
  expectNoFaults(page);
});

const WALKS: [string, string, readonly Role[]][] = [
  ['/audit', 'Audit', ['admin', 'owner']],
  ['/jobs', 'Jobs', ['member', 'admin', 'owner']],
];
it.each(
  WALKS.flatMap(([path, section, readers]) =>
    (['viewer', 'member', 'admin', 'owner'] as const).map((role) => ({
      path,
      section,
      role,
      may: readers.includes(role),
    })),
  ),
)('$path causes no refusal for the role $role', async (walk) => {
  await expectWalk(org, walk);
});

it.each(['light', 'dark'] as const)('the log is accessible in the %s theme at 320 pixels', async (colorScheme) => {
  const page = await org.open('admin', '/audit', { context: { colorScheme, viewport: { width: 320, height: 700 } } });
  await settled(page);
  expect(await overflow(page)).toBe(0);
  expect(await axeViolations(page)).toEqual([]);
  expectNoFaults(page);
});
