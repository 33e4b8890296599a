// Flows that lead over several screens: a grant opens one trace to a viewer; a rule that is written on real traces is run
// as an eval, and a dataset with two models as evals that are compared; repricing leads from the prices to the operator's
// page; a trace of 10,000 spans is walked by keyboard alone.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, faultsOf, openPage, orgPath, settled } from './support/browser.ts';
import { OwnOrg } from './support/own_org.ts';

const DAY_MS = 86_400_000;

it('a grant opens one trace to a viewer, nothing else, until it is revoked', async () => {
  const org = await OwnOrg.make();
  const event = { name: 'ask', outcome: 'error', duration_ms: 5, attributes: { prompt: 'Where is it?' } };
  const events = ['granted', 'other'].map((trace_id) => ({ ...event, trace_id, name: `ask ${trace_id}` }));
  await org.data('POST', `/orgs/${org.org_id}/ingest/custom`, { events });
  for (const { trace_id } of events)
    await eventually(async () => (await org.call('GET', `/v1/traces/${trace_id}`)).status === 200, { what: trace_id });
  const members = await org.data<{ user_id: string; role: string }[]>('GET', `/orgs/${org.org_id}/members`);
  const viewer = members.find(({ role }) => role === 'viewer')?.user_id ?? '';
  const { grant_id } = await org.as<{ grant_id: string }>('owner', 'POST', `/orgs/${org.org_id}/grants`, {
    user_id: viewer,
    resource: { type: 'trace', id: 'granted' },
    permissions: ['traces:read'],
    expires_at: new Date(Date.now() + DAY_MS).toISOString(),
  });
  const page = await org.open('viewer', '/shared');
  await page.getByText('You may read it').waitFor();
  await page.getByRole('link', { name: 'granted', exact: true }).click();
  await page
    .getByRole('treegrid')
    .getByRole('row', { name: /ask granted/ })
    .waitFor();
  await settled(page);
  expect(await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Traces' }).count()).toBe(
    0,
  );
  expectNoFaults(page);
  await page.goto(`/o/${org.org_id}/traces/other`);
  await page.getByText(/may not read this page/).waitFor();
  // The page asks for the trace beside the session, and is refused.
  expect(faultsOf(page).filter((fault) => !fault.includes('status of 403'))).toEqual([]);
  await org.as('owner', 'DELETE', `/orgs/${org.org_id}/grants/${grant_id}`);
  await page.goto(`/o/${org.org_id}/shared`);
  await page.getByText('Nothing is shared with you').waitFor();
});

/** Fills in the dialog of an eval over a dataset with one model, and runs it. */
async function runDataset(page: Page, { dataset_id, model }: { dataset_id: string; model: string }): Promise<void> {
  await page.goto(orgPath(`/datasets/${dataset_id}`));
  await page.getByRole('link', { name: 'Run dataset' }).click();
  const dialog = page.getByRole('dialog', { name: 'Run eval' });
  const judge = dialog.getByRole('combobox', { name: 'Judge' });
  await judge.getByRole('option', { name: 'Helps (version 1)' }).waitFor({ state: 'attached' });
  await judge.selectOption({ label: 'Helps (version 1)' });
  await dialog.getByRole('textbox', { name: 'Model' }).fill(model);
  await dialog.getByRole('button', { name: 'Run eval' }).click();
  await page.getByRole('grid', { name: 'Judged items' }).getByText('Pass').first().waitFor();
}

it('a rule is written on real traces and run as an eval, and two runs of a dataset are compared', async () => {
  const page = await openPage({ at: '~/judges/new' });
  const name = `Flow ${randomUUID().slice(0, 8)}`;
  await page.getByRole('textbox', { name: 'Name' }).fill(name);
  await page.getByRole('textbox', { name: 'Agents' }).fill('judged-agent');
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('sorry');
  await page.getByText(/^\d+ of 12 pass, \d+ fail$/).waitFor();
  await page.keyboard.press('Control+Enter');
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await page.getByRole('link', { name: 'Run eval' }).click();
  const dialog = page.getByRole('dialog', { name: 'Run eval' });
  await dialog.getByRole('radio', { name: 'Traces of a list' }).check();
  await dialog.getByRole('textbox', { name: 'Query of the list of traces' }).fill('agent_id=judged-agent&t=24h');
  await dialog.getByText('Judges 12 traces by a rule').waitFor();
  await dialog.getByRole('button', { name: 'Run eval' }).click();
  await page.getByRole('grid', { name: 'Judged items' }).getByText('Fail').first().waitFor();

  const items = ['a lamp', 'a sofa'].map((question) => ({ input: { question }, expected: { answer: 'helps' } }));
  const made = await api('/v1/datasets', { name, version: '1', items });
  const { dataset_id } = ((await made.json()) as { data: { dataset_id: string } }).data;
  await runDataset(page, { dataset_id, model: 'model-small' });
  await runDataset(page, { dataset_id, model: 'model-large' });
  await page.getByRole('button', { name: 'Compare with the eval before' }).click();
  await page.getByText(/^\+1\.5 ± .* \(95 % interval, 2 items with both scores\)/).waitFor();
  await page
    .getByRole('grid')
    .getByRole('row', { name: /Item 0/ })
    .getByText('Fail')
    .waitFor();
  expectNoFaults(page);
});

it('the prices lead to the repricing of the operator, who logs in and finds the range filled in', async () => {
  const page = await openPage({ at: '~/costs/prices' });
  await page.getByRole('link', { name: 'Reprice on the operator’s page' }).click();
  await page.waitForURL((url) => url.pathname === '/operator/repricing');
  const token = page.getByLabel('Operator token');
  await token.fill(inject('portal').admin_token);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Repricing' }).waitFor();
  const today = new Date().toISOString().slice(0, 10);
  expect(await page.getByLabel('Last day (UTC)').inputValue()).toBe(today);
  expect(new URL(page.url()).searchParams.get('org')).toBe(inject('portal').org_id);
  await page.getByRole('button', { name: 'Reprice calls' }).waitFor();
});

it('a trace of 10,000 spans is walked by keyboard alone, with few rows mounted', async () => {
  const trace_id = `large-${randomUUID()}`;
  const { org_id } = inject('portal');
  const BATCHES = 10;
  const STEPS = 999;
  for (let batch = 0; batch < BATCHES; batch++) {
    const parent = { name: `batch ${batch}`, span_id: `b${batch}`, outcome: 'success', duration_ms: 1000, trace_id };
    // Names differ, so that no siblings are folded into one row.
    const steps = Array.from({ length: STEPS }, (_, at) => ({
      name: `step ${batch}-${at}`,
      span_id: `s${batch}-${at}`,
      parent_span_id: `b${batch}`,
      outcome: batch === 7 && at === 500 ? 'error' : 'success',
      duration_ms: 1,
      trace_id,
    }));
    const root = batch === 0 ? {} : { parent_span_id: 'b0' };
    await api(`/orgs/${org_id}/ingest/custom`, { events: [{ ...parent, ...root }, ...steps] });
  }
  await eventually(
    async () => {
      const answer = await api(`/v1/traces/${trace_id}/outline`).catch(() => null);
      return answer !== null && ((await answer.json()) as { meta: { total: number } }).meta.total === 10_000;
    },
    { what: 'the whole trace' },
  );
  const page = await openPage({ at: `~/traces/${trace_id}` });
  await settled(page);
  const selected = page.getByRole('treegrid').getByRole('row', { selected: true });
  const selects = (name: string): Promise<void> =>
    eventually(async () => (await selected.innerText()).includes(name), { what: `the row ${name}` });
  await page.keyboard.press('.');
  await selects('step 7-500');
  await page.keyboard.press('j');
  await selects('step 7-501');
  await page.keyboard.press('ArrowLeft');
  await selects('batch 7');
  await page.keyboard.press('ArrowLeft');
  await eventually(async () => (await selected.getAttribute('aria-expanded')) === 'false', { what: 'a folded row' });
  await page.keyboard.press('/');
  await page.keyboard.type('step 9-998');
  await page.keyboard.press('Enter');
  await selects('step 9-998');
  expect(await page.getByRole('treegrid').getByRole('row').count()).toBeLessThan(120);
  expectNoFaults(page);
});
