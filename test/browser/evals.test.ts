// Evals in the browser: one is started from the list, watched and read item by item; two are compared
// with the interval of their difference, and an item shows what differs between its answers.
import { expect, inject, it } from 'vitest';
import { axeViolations, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';

const pathOf = (url: string): string => new URL(url).pathname;

it('an eval says how many traces it judges before it starts, and then shows its items with their reasons', async () => {
  const { judge_id } = inject('judged');
  const page = await openPage({ at: `~/evals?judge_id=${judge_id}` });
  await settled(page);
  await page.getByRole('button', { name: 'Run eval' }).waitFor();
  await page.keyboard.press('n');
  const dialog = page.getByRole('dialog', { name: 'Run eval' });
  await dialog.getByRole('combobox', { name: 'Judge' }).selectOption(judge_id);
  await dialog.getByRole('radio', { name: 'Traces of a list' }).check();
  await dialog.getByRole('textbox', { name: 'Query of the list of traces' }).fill('agent_id=judged-agent&t=24h');
  await dialog.getByText('Judges 12 traces by a rule, without model calls.').waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Run eval' }).click();
  await page.getByRole('grid', { name: 'Judged items' }).getByText('Fail').first().waitFor();
  await page.getByRole('button', { name: 'fail', exact: true }).click();
  await page.getByText('6 items', { exact: true }).waitFor();
  await page.getByRole('grid', { name: 'Judged items' }).focus();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const sheet = page.getByRole('dialog');
  await sheet.getByText('matches the pattern').waitFor();
  await sheet
    .getByText(/I am sorry|Monday/)
    .first()
    .waitFor();
  expectNoFaults(page);
});

it('the price of an eval by a model stands in the dialog', async () => {
  const page = await openPage({ at: '~/evals?new=1' });
  const dialog = page.getByRole('dialog', { name: 'Run eval' });
  const judge = dialog.getByRole('combobox', { name: 'Judge' });
  await judge.getByRole('option', { name: 'Helps (version 1)' }).waitFor({ state: 'attached' });
  await judge.selectOption({ label: 'Helps (version 1)' });
  await dialog.getByRole('textbox', { name: 'Traces of the last 7 days' }).fill('5');
  await dialog.getByText('Judges 5 traces with 5 model calls, for which no price is known.').waitFor();
  expectNoFaults(page);
});

it('two evals that are ticked are compared by c, and the difference is said with its interval', async () => {
  const { judge_id, evals } = inject('judged');
  const page = await openPage({ at: `~/evals?judge_id=${judge_id}` });
  await settled(page);
  const rows = page.getByRole('grid', { name: 'Evals' }).getByRole('checkbox');
  const count = await rows.count();
  await rows.nth(count - 1).check();
  await rows.nth(count - 2).check();
  await page.keyboard.press('c');
  await page.waitForURL(`**${orgPath(`/evals/compare/${evals[0]}/${evals[1]}`)}`);
  await page.getByText('−0.25 ± 0.29: within chance (95 % interval, 12 items with both scores).').waitFor();
  await page.getByRole('button', { name: 'regressed 3' }).waitFor();
  await page.getByRole('button', { name: 'unchanged 9' }).waitFor();
  await page.keyboard.press('s');
  await page.getByText('+0.25 ± 0.29: within chance').waitFor();
  expectNoFaults(page);
});

it('an item of two runs of a dataset shows its input, both reasons and what differs between both answers', async () => {
  const { runs } = inject('judged');
  const page = await openPage({ at: `~/evals/compare/${runs[0]}/${runs[1]}?change=improved` });
  await page.getByRole('grid', { name: 'Compared items' }).getByText('Item 1').click();
  const dialog = page.getByRole('dialog', { name: 'Item 1' });
  await dialog.getByText('It does not help.').waitFor();
  await dialog.getByText('It answers the question.').waitFor();
  await dialog.getByText('"question": "a lamp"').waitFor();
  await dialog.getByText('An unhelpful answer of model-small').waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'improved 2' }).waitFor();
  expectNoFaults(page);
});

it('an address of a comparison that does not exist says so and keeps the page', async () => {
  const { evals } = inject('judged');
  const page = await openPage({ at: `~/evals/compare/${evals[0]}/eval_none` });
  await page.getByRole('alert').waitFor();
  expect(pathOf(page.url())).toContain('/evals/compare/');
});
