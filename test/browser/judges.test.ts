// Judges in the browser: a rule is written beside real traces and saved, changed with its difference
// shown, and a judge that asks a model says its price before it asks.
import type { Locator, Page } from 'playwright-core';
import { expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, axeViolations, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';
import { aPerson } from './support/person.ts';

let made = 0;
const unique = (name: string): string => `${name} ${Date.now()} ${++made}`;
const verdicts = (page: Page): Locator =>
  page.getByRole('list', { name: 'Traces with their verdicts' }).getByRole('listitem');
const inScope = async (page: Page): Promise<void> => {
  await page.getByRole('textbox', { name: 'Agents' }).fill('judged-agent');
  await page.getByText('Matches 12 traces of the last 24 h').waitFor();
};

it('a rule is judged on real traces while it is typed, failures first, and then saved', async () => {
  const page = await openPage({ at: '~/judges' });
  await settled(page);
  await page.getByRole('link', { name: 'Create judge' }).waitFor();
  await page.keyboard.press('n');
  await page.getByRole('textbox', { name: 'Name' }).fill(unique('Says nothing of Monday'));
  await inScope(page);
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Monday');
  await page.getByText('9 of 12 pass, 3 fail').waitFor();
  expect(await verdicts(page).first().innerText()).toMatch(/Fail[^]*contains the value/);
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('nothing says this');
  await page.getByText('12 of 12 pass').waitFor();
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Monday');
  await page.getByText('9 of 12 pass, 3 fail').waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('button', { name: 'Edit judge' }).waitFor();
  await page.getByText('Does not contain a text: Monday').waitFor();
  expectNoFaults(page);
});

it('an error of the API stands at the field that it names, and the preview keeps the last verdicts', async () => {
  const page = await openPage({ at: '~/judges/new?from=no_refusal' });
  await inScope(page);
  await page.getByText(/of 12 pass/).waitFor();
  const pattern = page.getByRole('textbox', { name: 'Pattern' });
  await pattern.fill('[');
  await eventually(async () => (await pattern.getAttribute('aria-invalid')) === 'true', { what: 'the invalid field' });
  expect(await verdicts(page).count()).toBe(12);
});

it('saving a change shows what differs and creates the next version', async () => {
  const name = unique('Versioned');
  const { data } = (await (
    await api('/v1/judges', {
      name,
      kind: 'deterministic',
      rule: { type: 'contains', value: 'first text' },
      threshold: { pass: 1 },
      enabled: false,
    })
  ).json()) as { data: { judge_id: string } };
  const page = await openPage({ at: `~/judges/${data.judge_id}` });
  await page.getByRole('button', { name: 'Edit judge' }).waitFor();
  await page.keyboard.press('e');
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('second text');
  await page.keyboard.press('Control+Enter');
  const dialog = page.getByRole('dialog', { name: `Save version 2 of ${name}` });
  await dialog.getByText('second text').first().waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Save version 2' }).click();
  await page.getByText('Version 2 was saved.').waitFor();
  await page.getByRole('tab', { name: 'Versions' }).click();
  await page.getByRole('button', { name: 'Show version 1' }).waitFor();
  expectNoFaults(page);
});

it('a judge that asks a model says its price and judges only when the button is pressed', async () => {
  const page = await openPage({ at: '~/judges/new' });
  await inScope(page);
  await page.getByRole('radio', { name: 'A model' }).check();
  await page.getByRole('textbox', { name: 'Model', exact: true }).fill('gpt-4o');
  const button = page.getByRole('button', { name: /^Judge 12 traces \(about \$0\.\d+\)$/ });
  await button.waitFor();
  expect(await page.getByText(/of 12 pass/).count()).toBe(0);
  await button.click();
  await page.getByText('12 of 12 pass').waitFor();
  await page.getByRole('img', { name: /Preview: 12 with score 4/ }).waitFor();
  expectNoFaults(page);
});

it('a template marks names that are no variable', async () => {
  const page = await openPage({ at: '~/judges/new' });
  await page.getByRole('radio', { name: 'A model' }).check();
  await page.getByRole('textbox', { name: /Template of the prompt/ }).fill('Rate {{response}} and {{nonsense}}');
  await page.getByText('Not a variable: nonsense. It stays in the prompt as it is.', { exact: true }).waitFor();
  expectNoFaults(page);
});

it('one judge shows its pass rate by day, its failing traces with reasons, and its evals', async () => {
  const { judge_id, evals } = inject('judged');
  const page = await openPage({ at: `~/judges/${judge_id}` });
  await page.getByRole('region', { name: 'Verdicts by day and version' }).getByRole('cell', { name: '75 %' }).waitFor();
  await page.getByRole('tab', { name: 'Judged traces' }).click();
  await page.getByText('3 traces of the last 30 days').waitFor();
  expect(await page.getByText('response contains the value').count()).toBe(3);
  await page.getByRole('tab', { name: 'Evals' }).click();
  await page.getByRole('link', { name: evals[0] }).waitFor();
  expectNoFaults(page);
});

it('texts of traces and names of judges are shown as they are, and never as markup', async () => {
  const hostile = '<img src=x onerror="document.title=1"> \u202Eevil {{x}}';
  const name = unique(hostile);
  const { org_id } = inject('portal');
  await api(`/orgs/${org_id}/ingest/custom`, {
    events: [
      {
        name: hostile,
        agent_id: 'hostile-judged',
        outcome: 'success',
        duration_ms: 1,
        attributes: { response: hostile },
      },
    ],
  });
  const { data } = (await (
    await api('/v1/judges', {
      name,
      kind: 'deterministic',
      rule: { type: 'not_contains', value: hostile },
      threshold: { pass: 1 },
      scope: { agent_id: ['hostile-judged'] },
      enabled: false,
    })
  ).json()) as { data: { judge_id: string } };
  await eventually(
    async () => {
      const answer = await api('/v1/traces?agent_id=hostile-judged&limit=1');
      return ((await answer.json()) as { meta: { total: number } }).meta.total === 1;
    },
    { what: 'the hostile trace' },
  );
  const page = await openPage({ at: `~/judges/${data.judge_id}?edit=1` });
  await page.getByText('0 of 1 pass, 1 fail').waitFor();
  expect(await page.locator('main img[src="x"]').count()).toBe(0);
  expect(await verdicts(page).innerText()).toContain('<img src=x');
  expectNoFaults(page);
});

it('a member reads judges and runs evals, and is shown nothing that only an admin may do', async () => {
  const { judge_id } = inject('judged');
  const member = await aPerson(inject('portal'), 'member');
  const page = await openPage({ at: `~/judges/${judge_id}`, as: member });
  await page.getByRole('link', { name: 'Run eval' }).waitFor();
  expect(await page.getByRole('button', { name: /^(Edit|Disable) judge$/ }).count()).toBe(0);
  await page.goto(orgPath('/judges'));
  await page.getByRole('grid', { name: 'Judges' }).waitFor();
  expect(await page.getByRole('link', { name: 'Create judge' }).count()).toBe(0);
  await page.goto(orgPath('/judges/new'));
  await page.getByText('judges:write').waitFor();
  expectNoFaults(page);
});
