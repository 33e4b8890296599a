// `npm run portal:shots [-- folder [name …]]`: writes a picture of every page of the portal, or of the named ones, in
// both themes and at three widths, for a person to look at. Starts a service with the data of the demonstration.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { findChromium } from '../support/chromium/install.ts';
import { stopServices } from '../support/service_process.ts';
import { aPrompt } from './support/prompts.ts';
import { startScriptedModel } from './support/scripted_model.ts';
import { launchChromium } from './support/chromium.ts';
import { fillQueue } from './support/annotation.ts';
import { settled, watchRequests } from './support/settled.ts';
import { makeJudged } from './support/judged.ts';
import { type PortalService, sendDemo, startPortalService } from './support/portal_service.ts';

const WIDTHS = [1440, 1024, 390];
const THEMES = ['light', 'dark'] as const;
const HEIGHT = 900;
const ROWS_MS = 200;
const PROMPT = 'support-answer';

interface Item {
  trace_id: string;
  root_span_name: string;
  session_id: string | null;
  user_id: string | null;
}

async function itemOf(portal: PortalService, query: string): Promise<Item> {
  const answer = await fetch(`${portal.url}/v1/traces?limit=1&${query}`, {
    headers: { authorization: `Bearer ${portal.api_key}`, 'x-org-id': portal.org_id },
  });
  const { data } = (await answer.json()) as { data: Item[] };
  const [item] = data;
  if (item === undefined) throw new Error(`no trace with ${query}`);
  return item;
}

async function idsOf(portal: PortalService, query: string): Promise<string[]> {
  const answer = await fetch(`${portal.url}/v1/traces?${query}`, {
    headers: { authorization: `Bearer ${portal.api_key}`, 'x-org-id': portal.org_id },
  });
  const { data } = (await answer.json()) as { data: Item[] };
  return data.map(({ trace_id }) => trace_id);
}

async function request(portal: PortalService, path: string, body: unknown): Promise<unknown> {
  const answer = await fetch(`${portal.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${portal.api_key}`,
      'x-org-id': portal.org_id,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  return answer.json();
}

interface House {
  webhook_id: string;
  monitor_id: string;
  incident_id: string;
}

/** Registers an agent, and makes an endpoint, a monitor and limits. Returns what has a page of its own. */
async function keepHouse(portal: PortalService): Promise<House> {
  const root = `/orgs/${portal.org_id}`;
  const make = async <T>(path: string, body: unknown): Promise<T> =>
    ((await request(portal, path, body)) as { data: T }).data;
  const { register_token } = await make<{ register_token: string }>(`${root}/agents/register-tokens`, {});
  const agent = { agent_id: 'checkout-agent', name: 'Checkout', framework: 'custom', version: '1.4.0' };
  await make(`${root}/agents/register`, { ...agent, register_token });
  const { webhook_id } = await make<{ webhook_id: string }>(`${root}/webhooks`, {
    url: 'https://example.com/hook',
    events: ['incident.created', 'trace.completed'],
    description: 'On-call',
  });
  const { monitor_id } = await make<{ monitor_id: string }>('/v1/monitors', {
    name: 'Failed spans by agent',
    query: { view: 'spans', measures: [{ measure: 'errors' }] },
    group_by: ['agent_id'],
    window_minutes: 60,
    threshold: { above: 3 },
    channels: [{ type: 'email', to: ['oncall@example.com'] }],
  });
  const headers = { authorization: `Bearer ${portal.api_key}`, 'x-org-id': portal.org_id };
  const answer = await fetch(`${portal.url}/v1/incidents?limit=1`, { headers });
  const { data } = (await answer.json()) as { data: { incident_id: string }[] };
  return { webhook_id, monitor_id, incident_id: data[0]?.incident_id ?? '' };
}

/** Returns the path of every picture's page, by the name of its file. */
async function pages(portal: PortalService): Promise<Record<string, string>> {
  const judged = await makeJudged(portal);
  const org = `/o/${portal.org_id}`;
  const failed = await itemOf(portal, 'agent_id=checkout-agent');
  const large = await itemOf(portal, 'agent_id=document-indexer');
  const idle = await itemOf(portal, 'agent_id=office-assistant');
  const talk = await itemOf(portal, 'agent_id=kitchenware-support');
  const post = (path: string, body: unknown) => request(portal, path, body);
  const some = await idsOf(portal, 'agent_id=kitchenware-support,checkout-agent&limit=8');
  const queue = await fillQueue(post, 'single', some);
  const pairs = await fillQueue(post, 'pairwise', await idsOf(portal, 'agent_id=help-desk&limit=8'));
  const house = await keepHouse(portal);
  return {
    login: '/login',
    home: org,
    start: `${org}/start`,
    traces: `${org}/traces?t=7d`,
    traces_filtered: `${org}/traces?t=7d&outcome=error`,
    traces_demo: `${org}/traces?t=7d&tags=demo`,
    traces_none: `${org}/traces?t=7d&agent_id=nobody`,
    trace_failed: `${org}/traces/${failed.trace_id}`,
    trace_large: `${org}/traces/${large.trace_id}`,
    trace_idle: `${org}/traces/${idle.trace_id}`,
    trace_graph: `${org}/traces/${large.trace_id}?view=graph`,
    trace_conversation: `${org}/traces/${talk.trace_id}?view=conversation`,
    trace_json: `${org}/traces/${talk.trace_id}?view=json`,
    compare: `${org}/compare/${talk.trace_id}/${failed.trace_id}`,
    datasets: `${org}/datasets`,
    dataset: `${org}/datasets/${judged.dataset_id}`,
    search: `${org}/search?q=refund`,
    sessions: `${org}/sessions`,
    session: `${org}/sessions/${talk.session_id ?? ''}`,
    users: `${org}/users`,
    user: `${org}/users/${talk.user_id ?? ''}`,
    judges: `${org}/judges`,
    judge_new: `${org}/judges/new?from=no_refusal`,
    judge: `${org}/judges/${judged.judge_id}`,
    judge_traces: `${org}/judges/${judged.judge_id}?tab=traces`,
    judge_versions: `${org}/judges/${judged.judge_id}?tab=versions`,
    evals: `${org}/evals`,
    eval_new: `${org}/evals?new=1`,
    eval: `${org}/evals/${judged.runs[0]}`,
    eval_item: `${org}/evals/${judged.runs[0]}?item=1`,
    evals_compared: `${org}/evals/compare/${judged.runs[0]}/${judged.runs[1]}`,
    evals_compared_item: `${org}/evals/compare/${judged.runs[0]}/${judged.runs[1]}?item=1`,
    prompts: `${org}/prompts`,
    prompts_none: `${org}/prompts?name=nobody`,
    prompt: `${org}/prompts/${PROMPT}`,
    prompt_changes: `${org}/prompts/${PROMPT}?version=2&against=1`,
    prompt_usage: `${org}/prompts/${PROMPT}?view=usage`,
    prompt_playground: `${org}/prompts/${PROMPT}?view=playground`,
    annotate: `${org}/annotate`,
    queue: `${org}/annotate/${queue}`,
    label: `${org}/annotate/${queue}/label`,
    label_pair: `${org}/annotate/${pairs}/label`,
    costs_budgets: `${org}/costs/budgets`,
    costs_outcomes: `${org}/costs/outcomes`,
    costs_prices: `${org}/costs/prices`,
    costs: `${org}/costs`,
    costs_by_agent: `${org}/costs?group_by=agent_id&days=90`,
    costs_forecast: `${org}/costs/forecast`,
    costs_anomalies: `${org}/costs/anomalies?z_threshold=1`,
    settings_members: `${org}/settings`,
    settings_roles: `${org}/settings/roles`,
    settings_keys: `${org}/settings/keys`,
    settings_grants: `${org}/settings/grants`,
    settings_grant_new: `${org}/settings/grants?resource_type=trace&resource_id=${failed.trace_id}`,
    settings_policy: `${org}/settings/policy`,
    settings_privacy: `${org}/settings/privacy`,
    settings_retention: `${org}/settings/retention`,
    settings_sampling: `${org}/settings/sampling`,
    settings_plan: `${org}/settings/plan`,
    monitors: `${org}/monitors`,
    monitor: `${org}/monitors/${house.monitor_id}`,
    monitor_new: `${org}/monitors/new`,
    incidents: `${org}/incidents`,
    incident: `${org}/incidents/${house.incident_id}`,
    agents: `${org}/agents`,
    agents_unregistered: `${org}/agents?show=unregistered`,
    agent: `${org}/agents/checkout-agent`,
    webhooks: `${org}/webhooks`,
    webhook: `${org}/webhooks/${house.webhook_id}`,
    webhook_verify: `${org}/webhooks/${house.webhook_id}?tab=verify`,
    dead_letters: `${org}/webhooks/dead-letters`,
    audit: `${org}/audit`,
    jobs: `${org}/jobs`,
    shared: `${org}/shared`,
    me: `${org}/me`,
    invite: '/invite#org_local.token',
    transfer: '/transfer#org_local.token',
    operator_analysts: '/operator/analysts',
    operator_orgs: '/operator/orgs',
    operator_jobs: '/operator/jobs',
    operator_pipeline: '/operator/pipeline',
    operator_dead_letters: '/operator/dead-letters',
    operator_repricing: '/operator/repricing',
    not_found: `${org}/nothing-here`,
  };
}

async function picture(page: Page, at: string, file: string): Promise<void> {
  await page.goto(at);
  await settled(page);
  // Rows ask for their sparklines and previews a moment after they appeared.
  await page.waitForTimeout(ROWS_MS);
  await settled(page);
  await page.screenshot({ path: file });
}

/** Returns the function that calls the API as a program of the organization. */
function caller({ url, org_id, api_key }: PortalService): (path: string, body?: unknown) => Promise<Response> {
  const headers = { 'x-org-api-key': api_key, 'x-org-id': org_id, 'content-type': 'application/json' };
  return (path, body) =>
    fetch(url + path, body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Logs the operator in. */
async function operatorCookie({ url, admin_token }: PortalService) {
  const headers = { authorization: `Bearer ${admin_token}` };
  const answer = await fetch(`${url}/admin/session`, { method: 'POST', headers });
  const [name = '', value = ''] = (answer.headers.getSetCookie()[0] ?? '').split(';')[0]?.split('=', 2) ?? [];
  const { hostname } = new URL(url);
  return { name, value, domain: hostname, path: '/admin', httpOnly: true, sameSite: 'Strict' as const };
}

async function main(folder: string, wanted: readonly string[]): Promise<void> {
  const found = await findChromium(console.log);
  mkdirSync(folder, { recursive: true });
  const portal = await startPortalService(model.url);
  await sendDemo(portal);
  await aPrompt(PROMPT, { org_id: portal.org_id, api: caller(portal) });
  const browser = await launchChromium(found);
  const all = Object.entries(await pages(portal)).filter(([name]) => wanted.length === 0 || wanted.includes(name));
  for (const colorScheme of THEMES) {
    for (const width of WIDTHS) {
      const context = await browser.newContext({
        baseURL: portal.url,
        colorScheme,
        viewport: { width, height: HEIGHT },
      });
      await context.addCookies([
        { ...portal.cookie, url: portal.url, httpOnly: true, sameSite: 'Strict' },
        await operatorCookie(portal),
      ]);
      const page = await context.newPage();
      watchRequests(page);
      for (const [name, at] of all) await picture(page, at, path.join(folder, `${name}_${colorScheme}_${width}.png`));
      await context.close();
    }
  }
  await browser.close();
  console.log(`${all.length * THEMES.length * WIDTHS.length} pictures in ${folder}`);
}

const model = await startScriptedModel();
try {
  await main(path.resolve(process.argv[2] ?? 'data/shots'), process.argv.slice(3));
} finally {
  await stopServices();
  await model.close();
}
