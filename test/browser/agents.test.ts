// Agents in the browser: the registry with its numbers, an id that sends without a registration and is
// registered with a token that is shown once, and archiving.
import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, overflow, settled } from './support/browser.ts';
import { OwnOrg, type Role } from './support/own_org.ts';
import { expectWalk } from './support/roles.ts';

let org: OwnOrg;

beforeAll(async () => {
  org = await OwnOrg.make();
});

/** Registers an agent. */
async function register(agent_id: string, name: string): Promise<void> {
  const root = `/orgs/${org.org_id}/agents`;
  const { register_token } = await org.data<{ register_token: string }>('POST', `${root}/register-tokens`);
  const body = { agent_id, name, framework: 'custom', version: '1.4.0', tags: ['prod'], register_token };
  await org.data('POST', `${root}/register`, body);
}

/** Sends traces of an agent, and resolves once they are counted. */
async function send(agent_id: string, outcomes: readonly string[]): Promise<void> {
  const events = outcomes.map((outcome, at) => ({
    name: 'plan',
    outcome,
    duration_ms: 10,
    attributes: {
      agent_id,
      at,
      span_kind: 'llm',
      model: 'gpt-4o',
      input_tokens: 100,
      output_tokens: 10,
      cost_usd: 0.5,
    },
  }));
  await org.data('POST', `/orgs/${org.org_id}/ingest/custom`, { events });
  const query = new URLSearchParams({ agent_id, limit: '1' });
  await eventually(
    async () => {
      const { json } = await org.call('GET', `/v1/traces?${query}`);
      return (json as { meta?: { total: number } }).meta?.total === outcomes.length;
    },
    { what: `the traces of ${agent_id}` },
  );
}

it('the registry shows the traces, failures and costs of an agent, and its page the same by day', async () => {
  const agent_id = `planner-${randomUUID()}`;
  await register(agent_id, 'Planner');
  await send(agent_id, ['success', 'success', 'success', 'error']);
  const page = await org.open('member', '/agents?name=planner');
  const row = page.getByRole('grid', { name: 'Agents' }).getByRole('row').filter({ hasText: agent_id });
  await row.getByText('25 %').waitFor();
  await row.getByText('$2.00').waitFor();
  expect(await page.getByRole('button', { name: 'Create register token' }).count()).toBe(0);
  await row.getByRole('link', { name: 'Planner' }).click();
  await page.getByRole('heading', { name: 'Planner', level: 1 }).waitFor();
  await page
    .getByLabel(/4 traces, 25\s% of them failed\./)
    .first()
    .waitFor();
  await page.getByRole('list', { name: 'Newest traces of the agent' }).getByRole('link').first().waitFor();
  await page.getByText('The agent has no limits of its own').waitFor();
  await page.keyboard.press('Shift+A');
  const dialog = page.getByRole('dialog', { name: 'Archive Planner' });
  expect(await axeViolations(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Archive agent' }).click();
  await page
    .getByText(/^Archived \d+|^Archived now/)
    .first()
    .waitFor();
  expect(await page.getByRole('button', { name: 'Archive agent' }).count()).toBe(0);
  expectNoFaults(page);
});

it('an id that sends without a registration is listed, and registers with a token that is shown once', async () => {
  const agent_id = `stranger ${randomUUID()} it's`;
  await send(agent_id, ['success']);
  await eventually(
    async () =>
      (await org.data<{ agent_id: string }[]>('GET', `/orgs/${org.org_id}/unregistered-agents`)).some(
        (one) => one.agent_id === agent_id,
      ),
    { what: 'the sender' },
  );
  const page = await org.open('admin', '/agents');
  await page.getByRole('button', { name: /^Not registered \(\d+\)$/ }).click();
  await page.getByRole('button', { name: `Register ${agent_id}` }).click();
  await page
    .getByRole('dialog', { name: 'Create register token' })
    .getByRole('button', { name: 'Create token' })
    .click();
  const dialog = page.getByRole('dialog', { name: 'Register token' });
  const command = await dialog.getByLabel('Command that registers an agent').innerText();
  expect(command).toContain('"register_token": "rt_');
  expect(command).toContain(String.raw`it'\''s`);
  expect(await axeViolations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await dialog.getByRole('checkbox', { name: 'I have stored the token' }).check();
  const token = /rt_[\w-]+/.exec(command)?.[0] ?? '';
  await org.data('POST', `/orgs/${org.org_id}/agents/register`, { agent_id, name: agent_id, register_token: token });
  await dialog.getByRole('button', { name: 'Close' }).click();
  await eventually(async () => (await page.getByRole('button', { name: `Register ${agent_id}` }).count()) === 0, {
    what: 'the list without the agent',
  });
  expect(await page.content()).not.toContain(token);
  expectNoFaults(page);
});

it('a viewer lands on the registry and sees no numbers that the role may not read', async () => {
  const page = await org.open('viewer', '/me');
  await page.goto('/');
  await page.waitForURL(/\/agents$/);
  await settled(page);
  expect(await page.getByRole('columnheader', { name: 'Cost, 7 d' }).count()).toBe(0);
  expectNoFaults(page);
});

it.each<Role>(['viewer', 'member', 'admin', 'owner'])(
  'the registry and an agent cause no refusal for a %s',
  async (role) => {
    const agent_id = `walked-${role}`;
    if ((await org.call('GET', `/orgs/${org.org_id}/agents/${agent_id}`)).status === 404)
      await register(agent_id, 'Walked');
    for (const path of ['/agents', '/agents?show=unregistered', `/agents/${agent_id}`])
      await expectWalk(org, { role, path, may: true, section: 'Agents' });
  },
);

it.each(['light', 'dark'] as const)('hostile names are data, in the %s theme at 320 pixels', async (colorScheme) => {
  const agent_id = `<b>x</b>-${colorScheme}-${randomUUID()}`;
  await register(agent_id, `<img src=x onerror="document.title=1"> \u202Eevil ${'w'.repeat(120)}`);
  for (const path of ['/agents', `/agents/${encodeURIComponent(agent_id)}`]) {
    const page = await org.open('member', path, { context: { colorScheme, viewport: { width: 320, height: 700 } } });
    await settled(page);
    expect(await page.title()).not.toBe('1');
    expect(await overflow(page)).toBe(0);
    expect(await axeViolations(page)).toEqual([]);
    expectNoFaults(page);
    await page.close();
  }
});
