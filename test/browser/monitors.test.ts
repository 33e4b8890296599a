// Monitors in the browser: one is created with a preview of its alerts, alerts, is muted, changed and
// deleted; each role sees what it may; texts of users stay texts. The alerts are those of the worker.
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, overflow, settled } from './support/browser.ts';
import { OwnOrg, type Role } from './support/own_org.ts';

const HOSTILE = '<img src=x onerror=alert(1)>\u202etxet\u202c ' + 'w'.repeat(60);
const FAILURES: Record<string, number> = { ann: 4, bob: 1, [HOSTILE]: 3 };
const MINUTE_MS = 60_000;

interface Monitor {
  monitor_id: string;
  name: string;
  state: string;
  enabled: boolean;
  muted_until: string | null;
  threshold: Record<string, number>;
  query: { filters: unknown[] };
}

let org: OwnOrg;
let hostile: Monitor;

beforeAll(async () => {
  org = await OwnOrg.make();
  const started = Date.now() - 30 * MINUTE_MS;
  const events = Object.entries(FAILURES).flatMap(([user_id, failures]) =>
    Array.from({ length: failures }, (_, serial) => ({
      name: 'step',
      outcome: 'error',
      started_at: new Date(started).toISOString(),
      ended_at: new Date(started + 5).toISOString(),
      attributes: { user_id, serial },
    })),
  );
  await org.data('POST', `/orgs/${org.org_id}/ingest/custom`, { events });
  const query = { view: 'spans', measures: [{ measure: 'count' }] };
  await eventually(
    async () => {
      const since = new Date(started - MINUTE_MS).toISOString();
      const { totals } = await org.data<{ totals: number[] }>('POST', '/v1/analytics/query', { ...query, since });
      return totals[0] === events.length;
    },
    { what: 'the failures', withinMs: 60_000 },
  );
  hostile = await org.data<Monitor>('POST', '/v1/monitors', {
    name: HOSTILE,
    query: {
      view: 'spans',
      measures: [{ measure: 'errors' }],
      filters: [{ field: 'user_id', op: 'ne', value: HOSTILE }],
    },
    group_by: ['user_id'],
    window_minutes: 120,
    threshold: { above: 3 },
    channels: [{ type: 'email', to: ['oncall@example.com'] }],
  });
  await evaluate();
});

/** Runs the job now; the scheduled run may be in progress. */
async function evaluate(): Promise<void> {
  const { url, admin_token } = inject('portal');
  const headers = { authorization: `Bearer ${admin_token}`, 'content-type': 'application/json' };
  await eventually(
    async () => (await fetch(`${url}/admin/jobs/monitors/run`, { method: 'POST', headers, body: '{}' })).status === 200,
    { what: 'the run of the monitors', withinMs: 60_000 },
  );
}

async function open(role: Role, path: string): Promise<Page> {
  const page = await org.open(role, path);
  await settled(page);
  return page;
}

const monitors = () => org.data<Monitor[]>('GET', '/v1/monitors');
const named = async (name: string): Promise<Monitor | undefined> => (await monitors()).find((one) => one.name === name);
const rowsOf = (page: Page, region: string): Promise<string[][]> =>
  page
    .getByRole('region', { name: region })
    .locator('tbody tr')
    .evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('td')].map(({ textContent }) => textContent)));

it('a monitor is created with a preview, alerts, is muted, changed, disabled and deleted', async () => {
  const page = await open('admin', '/monitors');
  await page.keyboard.press('n');
  await page.waitForURL((url) => url.pathname.endsWith('/monitors/new'));
  await settled(page);
  await page.getByLabel('Name').fill('Failures by user');
  await page.getByLabel('Measure').selectOption('errors');
  await page.getByLabel('For each').selectOption('user_id');
  await page.getByLabel('Over the last minutes').fill('60');
  await page.getByLabel('Threshold').fill('2');
  await page.getByRole('status').getByText('2 alerts.').waitFor();
  expect((await rowsOf(page, 'Alerts in this time')).map(([group, , , value]) => [group, value]).toSorted()).toEqual(
    [
      [HOSTILE, '3'],
      ['ann', '4'],
    ].toSorted(),
  );
  await page.keyboard.press('Control+Enter');
  await page.waitForURL((url) => /\/monitors\/mon_/.test(url.pathname));
  await evaluate();
  await page.reload();
  await settled(page);
  expect((await rowsOf(page, 'Groups with their states')).slice(0, 3).map(([group, state]) => [group, state])).toEqual(
    expect.arrayContaining([
      ['ann', 'Alerting'],
      ['bob', 'OK'],
    ]),
  );
  const changes = await rowsOf(page, 'Changes of the monitor');
  expect(changes.map(([, group, change, , notified]) => [group, change, notified])).toContainEqual([
    'ann',
    'Alerting',
    'Yes',
  ]);
  await page.getByRole('button', { name: 'Mute monitor' }).press('ArrowDown');
  await page.getByRole('menuitem', { name: 'For 8 hours' }).press('Enter');
  await page.getByRole('button', { name: 'Unmute monitor' }).waitFor();
  expect(Date.parse((await named('Failures by user'))?.muted_until ?? '')).toBeGreaterThan(Date.now());
  await page.getByRole('button', { name: 'Unmute monitor' }).click();
  await page.getByRole('button', { name: 'Mute monitor' }).waitFor();
  await page.keyboard.press('e');
  await page.getByLabel('Threshold').fill('100');
  await page.keyboard.press('Control+Enter');
  // The form says the sentence too, before the monitor is saved.
  await page.getByLabel('Threshold').waitFor({ state: 'detached' });
  await page.getByText('above 100 over 60 minutes').waitFor();
  expect(await named('Failures by user')).toMatchObject({ threshold: { above: 100 }, muted_until: null });
  await page.getByRole('button', { name: 'Disable monitor' }).click();
  await page.getByRole('button', { name: 'Enable monitor' }).waitFor();
  await page.keyboard.press('Delete');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete monitor' }).click();
  await page.waitForURL((url) => url.pathname.endsWith('/monitors'));
  expect(await named('Failures by user')).toBeUndefined();
  expectNoFaults(page);
});

it('the editor says which field is missing or refused, and keeps what was typed', async () => {
  const page = await open('admin', '/monitors/new?view=traces&measure=count&agg=sum');
  await page.keyboard.press('Control+Enter');
  await page.getByText('Enter a name.').waitFor();
  await page.getByText('Enter a number.').waitFor();
  await page.getByLabel('Name').fill('No traces');
  await page.getByLabel('Threshold').fill('1');
  await page.getByLabel('Alerts when the value is').selectOption('below');
  await page.getByLabel('Mail to').fill('nobody');
  await page.keyboard.press('Control+Enter');
  await page.getByText('Must be an email address').waitFor();
  expect(await page.getByLabel('Threshold').inputValue()).toBe('1');
  expect(await named('No traces')).toBeUndefined();
});

it('a list of traces begins a monitor of its filters, and names those that it leaves out', async () => {
  const page = await open('admin', '/traces?t=7d&user_id=ann&model=gpt-4o');
  await page.getByRole('link', { name: 'Monitor this' }).click();
  await page.waitForURL((url) => url.pathname.endsWith('/monitors/new'));
  await settled(page);
  expect(await page.getByLabel('Field of filter 1').inputValue()).toBe('user_id');
  expect(await page.getByLabel('Value of filter 1').inputValue()).toBe('ann');
  await page.getByText('so it is left out: model').waitFor();
  expectNoFaults(page);
});

describe('rights', () => {
  it('a member reads monitors and is offered no change', async () => {
    const list = await open('member', '/monitors');
    await list.getByRole('grid', { name: 'Monitors' }).waitFor();
    expect(await list.getByRole('link', { name: 'Create monitor' }).count()).toBe(0);
    const one = await open('member', `/monitors/${hostile.monitor_id}?edit=1`);
    await one.getByRole('heading', { name: 'Changes' }).waitFor();
    expect(await one.getByRole('button', { name: /Edit|Mute|Disable|Delete/ }).count()).toBe(0);
    const editor = await open('member', '/monitors/new');
    expect(await editor.getByRole('form', { name: 'Monitor' }).count()).toBe(0);
    expectNoFaults(list);
    expectNoFaults(one);
  });

  it('a viewer is not shown monitors', async () => {
    const page = await open('viewer', '');
    expect(await page.getByRole('navigation').getByRole('link', { name: 'Monitors' }).count()).toBe(0);
  });
});

const pages: Record<string, () => string> = {
  'the list': () => '/monitors',
  'the list without a match': () => '/monitors?state=disabled',
  'a monitor': () => `/monitors/${hostile.monitor_id}`,
  'a monitor that is edited': () => `/monitors/${hostile.monitor_id}?edit=1`,
  'a new monitor': () => '/monitors/new',
};

describe.each(Object.keys(pages))('%s of monitors with texts of users', (name) => {
  const at = (): string => pages[name]?.() ?? '';

  it.each(['light', 'dark'] as const)('meets WCAG 2.2 AA in the %s theme and runs nothing', async (colorScheme) => {
    const page = await org.open('admin', at(), { context: { colorScheme } });
    await settled(page);
    expect(await axeViolations(page)).toEqual([]);
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    expectNoFaults(page);
  });

  it('does not scroll sideways at 320 pixels', async () => {
    const page = await org.open('admin', at(), { context: { viewport: { width: 320, height: 700 } } });
    await settled(page);
    expect(await overflow(page)).toBe(0);
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
  });
});
