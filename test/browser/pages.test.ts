// Every page is held to the same rules: no error on its console, no breach of its policy, no foreign request,
// WCAG 2.2 AA by axe in both themes, and no sideways scrolling at the width of a phone.
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { fillQueue } from './support/annotation.ts';
import { api, axeViolations, expectNoFaults, openPage, overflow, settled } from './support/browser.ts';
import { aPrompt } from './support/prompts.ts';

interface Item {
  trace_id: string;
  session_id: string;
  user_id: string;
}

const ids: Record<string, Item> = {};
const PROMPT = 'pages/answer';
let queue_id = '';
let dataset_id = '';
const agents = ['checkout-agent', 'document-indexer', 'kitchenware-support'] as const;

beforeAll(async () => {
  for (const agent of agents) {
    const { data } = (await (await api(`/v1/traces?limit=50&agent_id=${agent}`)).json()) as {
      data: (Omit<Item, 'session_id'> & { session_id: string | null })[];
    };
    // Other files replay runs of the demonstration, and a replay has no session.
    const item = data.find((one): one is Item => one.session_id !== null);
    if (item === undefined) throw new Error(`the demonstration sent no run of ${agent}`);
    ids[agent] = item;
  }
  const dataset = { name: 'pages', version: '1', items: [{ input: { text: 'May I return a sofa?' } }] };
  dataset_id = ((await (await api('/v1/datasets', dataset)).json()) as { data: { dataset_id: string } }).data
    .dataset_id;
  const { data } = (await (await api('/v1/traces?limit=8&agent_id=kitchenware-support,checkout-agent')).json()) as {
    data: Item[];
  };
  const post = async (path: string, body: unknown): Promise<unknown> => (await api(path, body)).json();
  queue_id = await fillQueue(
    post,
    'single',
    data.map(({ trace_id }) => trace_id),
  );
  await aPrompt(PROMPT, { org_id: inject('portal').org_id, api });
});

const of = (agent: (typeof agents)[number]): Item => {
  const item = ids[agent];
  if (item === undefined) throw new Error(`no run of ${agent}`);
  return item;
};

const judged = () => inject('judged');

const pages: Record<string, () => string> = {
  home: () => '~/',
  start: () => '~/start',
  traces: () => '~/traces?t=7d',
  'traces without a match': () => '~/traces?t=7d&agent_id=nobody',
  'a failed trace': () => `~/traces/${of('checkout-agent').trace_id}`,
  'a trace of 2,000 spans': () => `~/traces/${of('document-indexer').trace_id}`,
  'the graph of a trace': () => `~/traces/${of('kitchenware-support').trace_id}?view=graph`,
  'the conversation of a trace': () => `~/traces/${of('kitchenware-support').trace_id}?view=conversation`,
  'the JSON of a trace': () => `~/traces/${of('kitchenware-support').trace_id}?view=json`,
  'two traces compared': () =>
    `~/compare/${of('kitchenware-support').trace_id}/${of('checkout-agent').trace_id}?only=all`,
  datasets: () => '~/datasets',
  'a dataset': () => `~/datasets/${dataset_id}`,
  search: () => '~/search?q=refund',
  sessions: () => '~/sessions?t=7d',
  'a session': () => `~/sessions/${of('kitchenware-support').session_id}`,
  users: () => '~/users?t=7d',
  'a user': () => `~/users/${of('kitchenware-support').user_id}`,
  judges: () => '~/judges',
  'a new judge': () => '~/judges/new',
  'a judge that is edited': () => `~/judges/${judged().judge_id}?edit=1`,
  'a judge': () => `~/judges/${judged().judge_id}`,
  'the failing traces of a judge': () => `~/judges/${judged().judge_id}?tab=traces`,
  'the versions of a judge': () => `~/judges/${judged().judge_id}?tab=versions`,
  evals: () => '~/evals',
  'an eval': () => `~/evals/${judged().runs[0]}`,
  'a comparison of evals': () => `~/evals/compare/${judged().runs.join('/')}`,
  prompts: () => '~/prompts',
  'prompts without a match': () => '~/prompts?name=nobody',
  'a prompt': () => `~/prompts/${encodeURIComponent(PROMPT)}`,
  'two versions of a prompt': () => `~/prompts/${encodeURIComponent(PROMPT)}?version=2&against=1`,
  'the usage of a prompt': () => `~/prompts/${encodeURIComponent(PROMPT)}?view=usage`,
  'the playground of a prompt': () => `~/prompts/${encodeURIComponent(PROMPT)}?view=playground`,
  'the annotation queues': () => '~/annotate',
  'an annotation queue': () => `~/annotate/${queue_id}`,
  labelling: () => `~/annotate/${queue_id}/label`,
  budgets: () => '~/costs/budgets',
  outcomes: () => '~/costs/outcomes',
  prices: () => '~/costs/prices',
  costs: () => '~/costs',
  'the forecast of costs': () => '~/costs/forecast',
  'anomalies of costs': () => '~/costs/anomalies',
  members: () => '~/settings',
  roles: () => '~/settings/roles',
  'API keys': () => '~/settings/keys',
  policy: () => '~/settings/policy',
  privacy: () => '~/settings/privacy',
  retention: () => '~/settings/retention',
  sampling: () => '~/settings/sampling',
  plan: () => '~/settings/plan',
  incidents: () => '~/incidents',
  'incidents without a match': () => '~/incidents?agent_id=nobody',
  agents: () => '~/agents',
  'agents that are not registered': () => '~/agents?show=unregistered',
  webhooks: () => '~/webhooks',
  'dead letters': () => '~/webhooks/dead-letters',
  'the audit log': () => '~/audit',
  jobs: () => '~/jobs',
  preferences: () => '~/me',
};

describe.each(Object.keys(pages))('the page "%s"', (name) => {
  const at = (): string => pages[name]?.() ?? '';

  it.each(['light', 'dark'] as const)('meets WCAG 2.2 AA in the %s theme, without errors', async (colorScheme) => {
    const page = await openPage({ at: at(), context: { colorScheme } });
    await settled(page);
    expect(await axeViolations(page)).toEqual([]);
    expectNoFaults(page);
  });

  it('has one first heading and does not scroll sideways at 320 pixels', async () => {
    const page = await openPage({ at: at(), context: { viewport: { width: 320, height: 700 } } });
    await settled(page);
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    expect(await overflow(page)).toBe(0);
    expectNoFaults(page);
  });
});
