// Retention with restore, the policy, grants, sampling and the plan in the browser, as owner and as
// those who may only read them.
import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, faultsOf, overflow, settled } from './support/browser.ts';
import { OwnOrg, type Role } from './support/own_org.ts';

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
const read = <T>(path: string): Promise<T> => org.data<T>('GET', `/orgs/${org.org_id}${path}`);
const refusals = (page: Page, status: number): readonly string[] =>
  faultsOf(page).filter((fault) => !fault.includes(`status of ${status}`));

interface Retention {
  telemetry_events: { full_prompt_response_days: number; metadata_only_days: number; delete_after_days: number | null };
  audit_log: { delete_after_days: number | null };
}

describe('retention', () => {
  it('is shown as a line in time, changed, and taken back before the nightly run', async () => {
    const before = await read<Retention>('/retention');
    const page = await open('owner', '/settings/retention');
    await page.getByText('From the first day to day 30').waitFor();
    await page.getByRole('textbox', { name: 'Texts to cold storage after (days)' }).fill('14');
    await page.getByRole('textbox', { name: 'Traces deleted after (days)' }).fill('730');
    await page.getByText('From day 730 on: Deleted').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('Control+Enter');
    await page.getByText('Saved the retention policy.').waitFor();
    expect((await read<Retention>('/retention')).telemetry_events).toEqual({
      full_prompt_response_days: 14,
      metadata_only_days: 365,
      delete_after_days: 730,
    });
    const pending = page.getByText('The policy was changed since the last nightly run.');
    await pending.waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Take changes back' }).click();
    await eventually(async () => JSON.stringify(await read<Retention>('/retention')) === JSON.stringify(before), {
      what: 'the policy from before',
    });
    await page.getByText('From the first day to day 30').waitFor();
    await pending.waitFor({ state: 'hidden' });
    expectNoFaults(page);
  });

  it('explains days that are out of order at their field', async () => {
    const page = await open('owner', '/settings/retention');
    const metadata = page.getByRole('textbox', { name: 'Attributes dropped after (days)' });
    await metadata.fill('ten');
    await page.getByText('Must be a whole number of days, 1 or more').waitFor();
    expect(await page.getByRole('button', { name: 'Save retention' }).isDisabled()).toBe(true);
    await metadata.fill('10');
    await page.getByRole('button', { name: 'Save retention' }).click();
    await page.getByText('Must be at least full_prompt_response_days (30)').waitFor();
    expect(await metadata.getAttribute('aria-invalid')).toBe('true');
    expect(refusals(page, 422)).toEqual([]);
  });

  it('is only read by a member, and names the role that changes it', async () => {
    const page = await open('member', '/settings/retention');
    await page
      .getByText(/^Owners may change this/)
      .first()
      .waitFor();
    expect(await page.getByRole('button', { name: /Save|Restore|Take/ }).count()).toBe(0);
    expect(await page.getByRole('textbox', { name: /Traces deleted/ }).getAttribute('readonly')).not.toBeNull();
    expectNoFaults(page);
  });

  it('restores the texts of a trace, and shows the job to its end', async () => {
    const page = await open('owner', '/settings/retention');
    await page.getByRole('button', { name: 'Restore texts' }).click();
    const restore = dialog(page).getByRole('button', { name: 'Restore texts' });
    expect(await restore.isDisabled()).toBe(true);
    await dialog(page).getByLabel('First day').fill('2026-05-02');
    await dialog(page).getByLabel('Last day').fill('2026-05-01');
    await restore.click();
    await dialog(page).getByRole('alert').getByText('not before since').waitFor();
    await dialog(page).getByLabel('Last day').fill('2026-05-02');
    await dialog(page).getByRole('textbox', { name: 'Traces' }).fill('run-1, run-2');
    expect(await axeViolations(page)).toEqual([]);
    await restore.click();
    const row = page.getByRole('region', { name: 'Restores' }).getByRole('row').nth(1);
    await row.getByText('Complete').waitFor();
    await row.getByText('texts restored: 0').waitFor();
    expect(refusals(page, 422)).toEqual([]);
  });
});

describe('the policy', () => {
  it('is changed by an owner, and an empty field resets to the default', async () => {
    const page = await open('owner', '/settings/policy');
    await page.getByRole('textbox', { name: /Longest stored prompt/ }).fill('8k');
    await page.getByRole('textbox', { name: /Reported difference/ }).fill('25');
    await page.getByRole('combobox', { name: 'What the gateway stores' }).selectOption('Usage alone');
    await page.getByRole('textbox', { name: /Longest stored prompt/ }).press('Enter');
    await page.getByText('Saved the policy.').waitFor();
    expect(await read('/policy')).toMatchObject({
      max_prompt_tokens: 8000,
      compare_threshold_percent: 25,
      capture: 'usage',
    });
    await page.getByRole('textbox', { name: /Reported difference/ }).fill('');
    await page.getByRole('textbox', { name: /Regression/ }).fill('lots');
    await page.getByText('Must be a number, or empty').waitFor();
    await page.getByRole('textbox', { name: /Regression/ }).fill('0.25');
    await page.getByRole('button', { name: 'Save policy' }).click();
    await eventually(
      async () => {
        const { compare_threshold_percent: percent, regression_drop: drop } =
          await read<Record<string, number>>('/policy');
        return percent === 10 && drop === 0.25;
      },
      { what: 'the changed policy' },
    );
    expectNoFaults(page);
  });

  it('is read by a viewer in fields that cannot be changed', async () => {
    const page = await open('viewer', '/settings/policy');
    expect(await page.getByRole('textbox', { name: /Longest stored prompt/ }).isDisabled()).toBe(true);
    expect(await page.getByRole('button', { name: 'Save policy' }).count()).toBe(0);
    await page.getByText(/^Owners may change this/).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    expectNoFaults(page);
  });
});

describe('grants', () => {
  it('give a viewer one trace from an address that names it, and are revoked', async () => {
    const trace_id = `run-${org.org_id}`;
    const event = { name: 'ask', outcome: 'success', duration_ms: 5, trace_id };
    await org.call('POST', `/orgs/${org.org_id}/ingest/custom`, { events: [event] });
    await eventually(async () => (await org.call('GET', `/v1/traces/${trace_id}`)).status === 200, {
      what: 'the trace',
      withinMs: 30_000,
    });
    const members = await read<{ user_id: string; role: string }[]>('/members');
    const viewer = members.find(({ role }) => role === 'viewer')?.user_id ?? '';
    const page = await open('owner', `/settings/grants?resource_type=trace&resource_id=${trace_id}`);
    await dialog(page).getByRole('combobox', { name: 'Member' }).selectOption(viewer);
    await dialog(page)
      .getByRole('checkbox', { name: /traces:export/ })
      .check();
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('Control+Enter');
    await dialog(page).waitFor({ state: 'hidden' });
    const row = page.getByRole('row').filter({ hasText: trace_id });
    await row.getByText('traces:read, traces:export').waitFor();
    expect(page.url()).not.toContain(trace_id);
    // Grants take no API key, so the audit log proves the grant.
    await row.getByRole('button', { name: /Revoke grant/ }).press('Enter');
    await dialog(page).getByRole('button', { name: 'Revoke grant' }).click();
    await page.getByText('No grant is in force.').waitFor();
    await eventually(
      async () => {
        const lines = await read<{ action: string }[]>('/audit-log?limit=20');
        return ['grant.create', 'grant.delete'].every((action) => lines.some((line) => line.action === action));
      },
      { what: 'the lines of the audit log' },
    );
    expectNoFaults(page);
  });

  it('on something that does not exist are refused in words', async () => {
    const page = await open('owner', '/settings/grants');
    await page.keyboard.press('n');
    await dialog(page).getByRole('combobox', { name: 'Resource' }).selectOption('judge');
    await dialog(page).getByRole('combobox', { name: 'Member' }).selectOption({ index: 1 });
    await dialog(page).getByRole('textbox', { name: 'Id of the resource' }).fill('judge_"><script>alert(1)</script>');
    await dialog(page).getByRole('button', { name: 'Create grant' }).click();
    await dialog(page).getByRole('alert').waitFor();
    expect(await page.getByRole('tab', { name: 'Grants' }).count()).toBe(1);
    expect(refusals(page, 404)).toEqual([]);
  });

  it('are explained to an admin who follows a link to them', async () => {
    const page = await open('admin', '/settings/grants');
    await page.getByText('which owners have').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    expectNoFaults(page);
  });
});

describe('what the operator sets', () => {
  it('is shown with the limits in force', async () => {
    const page = await open('admin', '/settings/plan');
    await page.getByText('enterprise').waitFor();
    expect(await page.getByText('Unlimited').count()).toBe(3);
    await page.getByRole('tab', { name: 'Sampling' }).click();
    await page.getByText('Always kept').waitFor();
    await page.getByText('Kept of other events').waitFor();
    expectNoFaults(page);
  });
});

describe('every tab for an owner', () => {
  it.each(['light', 'dark'] as const)('meets WCAG 2.2 AA in the %s theme, and fits 320 pixels', async (colorScheme) => {
    const page = await org.open('owner', '/settings', { context: { colorScheme } });
    await settled(page);
    for (const tab of await page.getByRole('tab').allTextContents()) {
      await page.getByRole('tab', { name: tab }).click();
      await settled(page);
      expect([tab, await axeViolations(page)]).toEqual([tab, []]);
      await page.setViewportSize({ width: 320, height: 700 });
      expect([tab, await overflow(page)]).toEqual([tab, 0]);
      await page.setViewportSize({ width: 1440, height: 900 });
    }
    expectNoFaults(page);
  });
});
