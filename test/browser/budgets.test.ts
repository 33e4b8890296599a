// Budgets, alerts, outcomes and prices in the browser, against limits and prices that take effect on
// real ingest. Each test has an organization of its own, as a hard limit refuses everything in it.
import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, faultsOf, settled } from './support/browser.ts';
import { type Answer, OwnOrg, type Role } from './support/own_org.ts';

interface Amount {
  used: number;
  soft_limit: number | null;
  hard_limit: number | null;
}
interface AgentBudget {
  agent_id: string;
  tokens: Amount;
}

let org: OwnOrg;
let sent = 0;

beforeEach(async () => {
  org = await OwnOrg.make();
  await call({ tokens: 1000, agent_id: 'planner' });
  await call({ tokens: 500, agent_id: 'writer', model: 'our-llama' });
  await landed(1500);
});

interface Call {
  tokens: number;
  agent_id?: string;
  model?: string;
  attributes?: Record<string, unknown>;
}

/** Sends one model call with new texts. */
function call({ tokens, agent_id, model = 'gpt-4o', attributes = {} }: Call): Promise<Answer> {
  sent += 1;
  return org.call('POST', `/orgs/${org.org_id}/ingest/chatcompletion`, {
    request: { model, messages: [{ role: 'user', content: `question ${sent}` }] },
    response: {
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'answer' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens },
    },
    duration_ms: 5,
    outcome: 'success',
    attributes: { ...(agent_id === undefined ? {} : { agent_id }), ...attributes },
  });
}

const budget = () => org.data<{ tokens: Amount; total_cost_usd: number }>('GET', '/v1/budgets');
const agents = () => org.data<AgentBudget[]>('GET', `/orgs/${org.org_id}/budget/agents`);
const landed = (tokens: number): Promise<void> =>
  eventually(async () => (await budget()).tokens.used >= tokens, { what: `${tokens} tokens`, withinMs: 30_000 });

async function open(role: Role, path: string): Promise<Page> {
  const page = await org.open(role, path);
  await settled(page);
  return page;
}
/** Expects no fault but the refusals that the test caused. */
const expectOnlyRefusals = (page: Page): void => {
  expect(faultsOf(page).filter((fault) => !fault.includes('status of 422'))).toEqual([]);
};
const dialog = (page: Page) => page.getByRole('dialog');

describe('a limit', () => {
  it('of an agent is set with three clicks, and its effect is shown before it is saved', async () => {
    const page = await open('admin', '');
    await page.getByRole('link', { name: 'Costs', exact: true }).click();
    await page.getByRole('tab', { name: 'Budgets' }).click();
    await page.getByRole('button', { name: 'Set limit of planner' }).click();
    await page.getByRole('textbox', { name: 'Hard limit' }).fill('2,000');
    await dialog(page).getByText('Hard limit of 2,000').waitFor();
    expect(await dialog(page).getByRole('cell', { name: 'Nothing refused' }).count()).toBe(3);
    await page.getByRole('textbox', { name: 'Hard limit' }).fill('800');
    await dialog(page).getByText('Hard limit of 800').waitFor();
    expect(await dialog(page).getByRole('cell', { name: 'Nothing refused' }).count()).toBe(2);
    await dialog(page).getByText('Use has already reached this limit').waitFor();
    expect(await dialog(page).getByRole('cell', { name: '200 (20 %)' }).count()).toBe(1);
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('textbox', { name: 'Hard limit' }).press('Enter');
    await dialog(page).waitFor({ state: 'hidden' });
    // A message stays while the pointer is on it, however long the next requests take.
    await page.getByRole('button', { name: 'Undo' }).hover();
    expect(await agents()).toMatchObject([{ agent_id: 'planner', tokens: { hard_limit: 800 } }]);
    await page
      .getByRole('row', { name: /planner/ })
      .getByText('Refused')
      .waitFor();
    expect(await call({ tokens: 1, agent_id: 'planner' })).toMatchObject({ status: 429 });
    expect(await call({ tokens: 1, agent_id: 'writer' })).toMatchObject({ status: 200 });

    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Restored the limits.').waitFor();
    expect(await agents()).toEqual([]);
    expectNoFaults(page);
  });

  it('that the service refuses is explained at its field', async () => {
    const page = await open('admin', '/costs/budgets');
    await page.getByRole('button', { name: 'Set limits of storage' }).click();
    await page.getByRole('textbox', { name: 'Hard limit' }).fill('10');
    await page.getByRole('textbox', { name: 'Soft limit' }).fill('20');
    await page.getByRole('button', { name: 'Save limits' }).click();
    const soft = page.getByRole('textbox', { name: 'Soft limit' });
    await eventually(async () => (await soft.getAttribute('aria-invalid')) === 'true', { what: 'the refused field' });
    await dialog(page).getByText('Must be at most the hard limit (10)').waitFor();
    await soft.fill('two');
    await dialog(page).getByText('Must be a whole number such as 10,000,000').waitFor();
    expect(await page.getByRole('button', { name: 'Save limits' }).isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
  });

  it('of the organization refuses ingest once it is reached, and the page says so', async () => {
    const { used } = (await budget()).tokens;
    const page = await open('admin', '/costs/budgets');
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.getByRole('button', { name: 'Set limits of tokens' }).click();
    await page.getByRole('textbox', { name: 'Hard limit' }).fill(String(used + 100));
    await page.getByRole('button', { name: 'Save limits' }).click();
    await dialog(page).waitFor({ state: 'hidden' });
    // On a busy machine the answer to an admitted event may be late (502): then the next try is rejected.
    await eventually(
      async () => (await call({ tokens: 100 })).status === 429 && (await budget()).tokens.used >= used + 100,
      { what: 'the limit reached' },
    );
    expect((await budget()).tokens.used).toBe(used + 100);
    await page.reload();
    await page.getByRole('alert').getByText('The hard limit on tokens is reached').waitFor();
    const other = await open('member', '/prompts');
    await other.getByRole('status').getByText('The hard limit on tokens is reached: ingest is refused').waitFor();
    await page.getByRole('button', { name: 'Set limits of tokens' }).click();
    await page.getByRole('textbox', { name: 'Hard limit' }).fill('');
    await page.getByRole('button', { name: 'Remove limits' }).click();
    await dialog(page).waitFor({ state: 'hidden' });
    await eventually(async () => (await call({ tokens: 1 })).status === 200, { what: 'ingest without the limit' });
    await page.getByRole('alert').waitFor({ state: 'hidden' });
  });
});

describe('a limit in USD', () => {
  it('of the organization shows what it would have refused before it is saved, and is kept to the cent', async () => {
    await call({ tokens: 1, attributes: { cost_usd: 0.5 } });
    await landed(1501);
    const page = await open('admin', '/costs/budgets');
    await page.getByRole('button', { name: 'Set limits of cost' }).click();
    await page.getByRole('textbox', { name: 'Hard limit' }).fill('0.25');
    await dialog(page).getByText('Hard limit of $0.25').waitFor();
    await dialog(page).getByText('Use has already reached this limit').waitFor();
    await page.getByRole('textbox', { name: 'Hard limit' }).fill('twelve');
    await dialog(page).getByText('Must be an amount in US dollars').waitFor();
    await page.getByRole('textbox', { name: 'Hard limit' }).fill('12.50');
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Save limits' }).click();
    await dialog(page).waitFor({ state: 'hidden' });
    expect(await org.data('GET', '/v1/budgets')).toMatchObject({ cost_usd: { hard_limit: 12.5 } });
    expectNoFaults(page);
  });

  it('of an agent is set beside its limit on tokens', async () => {
    const page = await open('admin', '/costs/budgets');
    await page.getByRole('button', { name: 'Set limit of planner' }).click();
    await page.getByRole('combobox', { name: 'Resource' }).selectOption('Cost');
    await page.getByRole('textbox', { name: 'Hard limit' }).fill('1.5');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await dialog(page).waitFor({ state: 'hidden' });
    expect(await agents()).toMatchObject([
      { agent_id: 'planner', tokens: { hard_limit: null }, cost_usd: { hard_limit: 1.5 } },
    ]);
    await page.getByRole('button', { name: 'Set cost limit of planner' }).waitFor();
    expectNoFaults(page);
  });
});

it('limits of an API key are set and shown with its use; who may not change keys gets no button', async () => {
  interface Key {
    id: string;
    name: string;
    use: { tokens: number } | null;
  }
  const keys = () => org.data<Key[]>('GET', `/orgs/${org.org_id}/api-keys`);
  const [first] = await keys();
  if (first === undefined) throw new Error('the organization has no key');
  const page = await open('admin', '/costs/budgets');
  const section = page.getByRole('region', { name: 'API keys', exact: true });
  await section
    .getByRole('button', { name: `Set limits of ${first.name}` })
    .first()
    .click();
  await page.getByRole('textbox', { name: 'Models' }).fill('gpt-4o*, our-*');
  await page.getByRole('textbox', { name: 'Requests a minute' }).fill('many');
  await dialog(page).getByText('Must be a number such as 600').waitFor();
  await page.getByRole('textbox', { name: 'Requests a minute' }).fill('1.5k');
  await page.getByRole('textbox', { name: 'Budget', exact: true }).fill('25');
  await page.getByRole('combobox', { name: 'Period of the budget' }).selectOption('A day');
  await page.getByRole('textbox', { name: 'User label' }).fill('ann');
  expect(await axeViolations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Save limits' }).click();
  await dialog(page).waitFor({ state: 'hidden' });
  expect((await keys()).find(({ id }) => id === first.id)).toMatchObject({
    models: ['gpt-4o*', 'our-*'],
    requests_per_minute: 1500,
    tokens_per_minute: null,
    budget: { resource: 'cost_usd', hard_limit: 25, period: 'day' },
    labels: { user_id: 'ann', department: null },
  });
  await section
    .getByRole('row', { name: new RegExp(first.name) })
    .getByText('a day')
    .first()
    .waitFor();
  expect(await axeViolations(page)).toEqual([]);
  expectNoFaults(page);

  const reader = await open('member', '/costs/budgets');
  await reader.getByRole('region', { name: 'API keys', exact: true }).getByText('gpt-4o*, our-*').waitFor();
  expect(await reader.getByRole('button', { name: `Set limits of ${first.name}` }).count()).toBe(0);
});

it('an alert is added, tested and deleted', async () => {
  const page = await open('admin', '/costs/budgets');
  await page.getByText('No channel is set, so alerts reach nobody.').waitFor();
  await page.getByRole('button', { name: 'Set channels' }).click();
  await page.getByRole('checkbox', { name: 'Webhook' }).check();
  await page.getByRole('textbox', { name: 'Address of the webhook' }).fill('ftp://example.com');
  await page.getByRole('button', { name: 'Save channels' }).click();
  const address = page.getByRole('textbox', { name: 'Address of the webhook' });
  await eventually(async () => (await address.getAttribute('aria-invalid')) === 'true', {
    what: 'the refused address',
  });
  await page.getByRole('checkbox', { name: 'Webhook' }).uncheck();
  await address.fill('');
  await page.getByRole('button', { name: 'Save channels' }).click();
  await page.getByText('Sent by e-mail to the owner').waitFor();

  await page.getByRole('button', { name: 'Add alert' }).click();
  await page.getByRole('textbox', { name: 'Percent of the limit' }).fill('100');
  await dialog(page).getByRole('button', { name: 'Add alert' }).click();
  await dialog(page).getByText('Must be a number above 0 and below 100').waitFor();
  await page.getByRole('textbox', { name: 'Percent of the limit' }).fill('75');
  await dialog(page).getByRole('button', { name: 'Add alert' }).click();
  await page.getByRole('row', { name: /Tokens 75 % warning/ }).waitFor();

  await page.getByRole('button', { name: 'Test alert' }).click();
  await page.getByText(/queued for e-mail to the owner/).waitFor();

  await page.getByRole('button', { name: 'Delete alert at 75 % of tokens' }).click();
  await page.getByText('No alerts yet.').waitFor();
  expect(await org.data('GET', `/orgs/${org.org_id}/budget/alerts`)).toMatchObject({
    channels: ['email'],
    thresholds: [],
  });
  expectOnlyRefusals(page);
});

it('a price that is set for a model without one is the price of its next call', async () => {
  // Budgets count a call before it has landed, and the page reads the landed ones, once.
  await eventually(
    async () =>
      (await org.data<{ model: string }[]>('GET', '/v1/cost/unpriced')).some(({ model }) => model === 'our-llama'),
    { what: 'the call without a price', withinMs: 30_000 },
  );
  const page = await open('admin', '/costs/prices');
  await page.getByRole('button', { name: 'Set price of our-llama' }).click();
  await dialog(page)
    .getByText(/has no price of this model/)
    .waitFor();
  await page.getByRole('textbox', { name: 'Input', exact: true }).fill('1000');
  await page.getByRole('textbox', { name: 'Output', exact: true }).fill('2000');
  await dialog(page)
    .getByText(/would have cost \$0\.\d/)
    .waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Save price' }).click();
  await dialog(page).waitFor({ state: 'hidden' });
  await page
    .getByRole('region', { name: 'Own prices' })
    .getByRole('row', { name: /our-llama/ })
    .waitFor();

  const before = (await budget()).total_cost_usd;
  await eventually(
    async () => {
      await call({ tokens: 10, model: 'our-llama' });
      return (await budget()).total_cost_usd > before;
    },
    { what: 'a call at the new price', withinMs: 30_000 },
  );
  await page.goto(`/o/${org.org_id}/costs?group_by=model`);
  await settled(page);
  await page.getByText('our-llama').first().waitFor();

  await page.goto(`/o/${org.org_id}/costs/prices`);
  await page.getByRole('button', { name: 'Edit or end price of our-llama' }).click();
  await page.getByLabel('From').fill('2026-03-02');
  await page.getByLabel('Until').fill('2026-03-01');
  await page.getByRole('button', { name: 'Save price' }).click();
  await dialog(page).getByText('Must be a day after from').waitFor();
  await page.getByLabel('Until').fill('2026-04-01');
  await page.getByRole('button', { name: 'Save price' }).click();
  await page.getByRole('row', { name: /our-llama 2026-03-02 2026-04-01 .* Ended/ }).waitFor();
  await page.getByRole('button', { name: /Delete price of our-llama/ }).click();
  await page.getByText('No own prices.').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page
    .getByRole('row', { name: /our-llama/ })
    .filter({ hasText: 'Ended' })
    .waitFor();
  expectOnlyRefusals(page);
});

it('the ROI follows a formula while it is typed, and an owner saves it', async () => {
  const attributes = { department: 'support', cost_usd: 2, outcomes: { tickets: 4 } };
  expect((await call({ tokens: 1, attributes })).status).toBe(200);
  await eventually(
    async () => {
      const { departments } = await org.data<{ departments: unknown[] }>('GET', '/v1/cost/outcomes');
      return departments.length === 1;
    },
    { what: 'the department', withinMs: 30_000 },
  );
  const member = await open('member', '/costs/outcomes');
  await member.getByRole('textbox', { name: 'Formula in USD' }).fill('tickets * 2.5');
  await member.getByRole('row', { name: /support .* 4 tickets .* 400 %/ }).waitFor();
  expect(new URL(member.url()).searchParams.get('value_of_outcomes')).toBe('tickets * 2.5');
  expect(await member.getByRole('button', { name: 'Save formula' }).count()).toBe(0);
  await member.getByRole('textbox', { name: 'Formula in USD' }).fill('tickets *');
  await member.getByText(/^Position \d+: /).waitFor();

  const owner = await open('owner', '/costs/outcomes?value_of_outcomes=tickets');
  await owner.getByRole('row', { name: /support .* 100 %/ }).waitFor();
  await owner.getByRole('button', { name: 'Save formula' }).click();
  await owner.getByText('Saved the formula.').waitFor();
  expect(await org.data('GET', `/orgs/${org.org_id}/policy`)).toMatchObject({ value_of_outcomes: 'tickets' });
  expectNoFaults(owner);
});

describe.each(['budgets', 'outcomes', 'prices'])('the tab "%s"', (tab) => {
  it('shows a member no control that changes anything, and causes no refusal', async () => {
    const page = await org.open('member', `/costs/${tab}`);
    const refused: string[] = [];
    page.on('response', (answer) => {
      if (answer.status() === 403) refused.push(answer.url());
    });
    await page.reload();
    await settled(page);
    expect(await page.getByRole('button', { name: /^(Set|Add|Edit|Delete|Save|Test|Limit)/ }).count()).toBe(0);
    expect(refused).toEqual([]);
    expectNoFaults(page);
  });

  it('explains to a viewer who may read it', async () => {
    const page = await open('viewer', `/costs/${tab}`);
    await page.getByText('costs:read').first().waitFor();
    expectNoFaults(page);
  });
});
