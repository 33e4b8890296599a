// Data that was made to break pages, on every screen: names, ids, texts and numbers with markup, right-to-left marks,
// control characters, words of 10,000 characters, 1e308 and emoji. Nothing of it runs, it is shown as text, and no page
// grows wider than its window.
import { beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, overflow, settled } from './support/browser.ts';
import { openIncident } from './support/incidents.ts';
import { coveredControls } from './support/layout.ts';
import { OwnOrg } from './support/own_org.ts';

const RUN = 'ran';
const MARKUP = `<img src=x onerror="document.title='${RUN}'"><script>document.title='${RUN}'</script>`;
const RTL = '\u202Edetrever\u202C \u2066isolated\u2069';
const CONTROL = 'bell\u0007 escape\u001B[31m null-like\u2400 tab\tend';
const EMOJI = '👩‍👩‍👧‍👦🏳️‍🌈é̂̃';
const WORD = 'w'.repeat(10_000);
/** A name of one line, as long as names may be. */
const NAME = `${MARKUP} ${RTL} ${EMOJI}`;
const TEXT = `${NAME}\n${CONTROL}\n${WORD}\njavascript:alert(1)`;
const AGENT = `<b>agent</b> ${RTL} ${'a'.repeat(60)}`;
const HUGE = 1e308;

interface Ids {
  trace_ids: string[];
  judge_id: string;
  eval_id: string;
  dataset_id: string;
  queue_id: string;
  prompt: string;
  incident_id: string;
  webhook_id: string;
  monitor_id: string;
}

let org: OwnOrg;
let ids: Ids;

beforeAll(async () => {
  org = await OwnOrg.make();
  const trace_ids = await sendTraces();
  const [registry, house] = await Promise.all([makeRegistry(trace_ids), keepHouse()]);
  ids = { trace_ids, ...registry, ...house };
});

async function sendTraces(): Promise<string[]> {
  const trace_ids = ['hostile-1', 'hostile-2', 'hostile-3'];
  const events = trace_ids.map((trace_id, at) => ({
    name: NAME,
    trace_id,
    outcome: at === 0 ? 'error' : 'success',
    duration_ms: 10,
    session_id: `s-${MARKUP.slice(0, 40)}`,
    user_id: `u-${RTL}`,
    tags: [MARKUP.slice(0, 60), RTL, EMOJI],
    attributes: {
      agent_id: AGENT,
      span_kind: 'llm',
      model: `model ${MARKUP}`.slice(0, 100),
      department: `<i>sales</i> ${RTL} ${'d'.repeat(100)}`,
      prompt: TEXT,
      response: TEXT,
      error_message: MARKUP,
      input_tokens: 10,
      output_tokens: 5,
      cost_usd: 999_999,
      outcomes: { tickets: 1 },
      n: HUGE,
      [MARKUP]: TEXT,
    },
  }));
  await org.data('POST', `/orgs/${org.org_id}/ingest/custom`, { events });
  await eventually(
    async () => (await org.data<unknown[]>('GET', `/v1/traces?trace_ids=${trace_ids.join()}`)).length === 3,
    { what: 'the traces' },
  );
  return trace_ids;
}

type Registry = Pick<Ids, 'judge_id' | 'eval_id' | 'dataset_id' | 'queue_id' | 'prompt'>;

async function makeRegistry(trace_ids: readonly string[]): Promise<Registry> {
  const { judge_id } = await org.data<{ judge_id: string }>('POST', '/v1/judges', {
    name: NAME,
    kind: 'deterministic',
    rule: { type: 'not_contains', value: MARKUP },
    threshold: { pass: 1 },
    scope: { agent_id: [AGENT] },
  });
  const { eval_id } = await org.data<{ eval_id: string }>('POST', '/v1/evals', { judge_id, trace_ids });
  const { dataset_id } = await org.data<{ dataset_id: string }>('POST', '/v1/datasets', {
    name: NAME,
    version: '1',
    items: [{ input: { [MARKUP]: TEXT, huge: HUGE }, expected: { text: TEXT }, metadata: { [RTL]: EMOJI } }],
  });
  const { queue_id } = await org.data<{ queue_id: string }>('POST', '/v1/annotation-queues', {
    name: NAME.slice(0, 100),
    instructions: TEXT.slice(0, 2000),
    scores: [{ name: 'correct', type: 'categorical', options: [MARKUP.slice(0, 40), RTL.slice(0, 40)] }],
  });
  await org.data('POST', `/v1/annotation-queues/${queue_id}/items`, { trace_ids });
  const prompt = `hostile-${'p'.repeat(80)}`;
  for (const template of [TEXT, `${TEXT} {{${'v'.repeat(60)}}}`])
    await org.data('POST', '/v1/prompts', { name: prompt, template, model: MARKUP.slice(0, 60) });
  return { judge_id, eval_id, dataset_id, queue_id, prompt };
}

async function keepHouse(): Promise<Pick<Ids, 'incident_id' | 'webhook_id' | 'monitor_id'>> {
  const root = `/orgs/${org.org_id}`;
  const { incident_id } = await openIncident(org, `${MARKUP} ${RTL} # ${'e'.repeat(400)}`, AGENT);
  const { webhook_id } = await org.data<{ webhook_id: string }>('POST', `${root}/webhooks`, {
    url: `https://example.com/${'u'.repeat(500)}?q=${encodeURIComponent(MARKUP)}`,
    events: ['trace.completed'],
    description: NAME,
  });
  const { monitor_id } = await org.data<{ monitor_id: string }>('POST', '/v1/monitors', {
    name: NAME.slice(0, 100),
    query: { view: 'spans', measures: [{ measure: 'errors' }] },
    group_by: ['agent_id'],
    window_minutes: 60,
    threshold: { above: 3 },
    channels: [{ type: 'email', to: ['oncall@example.com'] }],
  });
  await org.data('POST', `${root}/api-keys`, { name: NAME.slice(0, 100), scopes: ['traces:read'] });
  await org.data('POST', '/v1/views', {
    name: NAME.slice(0, 60),
    page: 'traces',
    query: 'outcome=error',
    scope: 'org',
  });
  return { incident_id, webhook_id, monitor_id };
}

const agent = (): string => encodeURIComponent(AGENT);
const PAGES: Readonly<Record<string, (made: Ids) => string>> = {
  home: () => '',
  traces: () => '/traces?t=7d',
  'a trace': ({ trace_ids }) => `/traces/${trace_ids[0] ?? ''}`,
  'the conversation of a trace': ({ trace_ids }) => `/traces/${trace_ids[0] ?? ''}?view=conversation`,
  'two traces compared': ({ trace_ids }) => `/compare/${trace_ids.slice(0, 2).join('/')}?only=all`,
  search: () => '/search?q=detrever',
  sessions: () => '/sessions?t=7d',
  users: () => '/users?t=7d',
  'costs by model': () => '/costs?group_by=model',
  'costs by agent': () => '/costs?group_by=agent_id',
  'costs by department': () => '/costs?group_by=department',
  forecast: () => '/costs/forecast',
  budgets: () => '/costs/budgets',
  outcomes: () => '/costs/outcomes',
  prices: () => '/costs/prices',
  judges: () => '/judges',
  'a judge': ({ judge_id }) => `/judges/${judge_id}`,
  'a judge that is edited': ({ judge_id }) => `/judges/${judge_id}?edit=1`,
  evals: () => '/evals',
  'an eval': ({ eval_id }) => `/evals/${eval_id}`,
  datasets: () => '/datasets',
  'a dataset': ({ dataset_id }) => `/datasets/${dataset_id}`,
  prompts: () => '/prompts',
  'a prompt': ({ prompt }) => `/prompts/${prompt}`,
  'two versions of a prompt': ({ prompt }) => `/prompts/${prompt}?version=2&against=1`,
  'the playground of a prompt': ({ prompt }) => `/prompts/${prompt}?view=playground`,
  'the annotation queues': () => '/annotate',
  'an annotation queue': ({ queue_id }) => `/annotate/${queue_id}`,
  labelling: ({ queue_id }) => `/annotate/${queue_id}/label`,
  monitors: () => '/monitors',
  'a monitor': ({ monitor_id }) => `/monitors/${monitor_id}`,
  incidents: () => '/incidents',
  'an incident': ({ incident_id }) => `/incidents/${incident_id}`,
  agents: () => '/agents?show=unregistered',
  'an agent': () => `/agents/${agent()}`,
  webhooks: () => '/webhooks',
  'an endpoint': ({ webhook_id }) => `/webhooks/${webhook_id}`,
  'API keys': () => '/settings/keys',
  members: () => '/settings',
  'the audit log': () => '/audit',
};

describe.each(Object.entries(PAGES))('the page "%s" with hostile data', (_name, pathOf) => {
  it.each([
    ['1440 pixels, light', { width: 1440, height: 900 }, 'light'],
    ['320 pixels, dark', { width: 320, height: 700 }, 'dark'],
  ] as const)('runs nothing, shows it as text and keeps its width at %s', async (_size, viewport, colorScheme) => {
    const page = await org.open('owner', pathOf(ids), { context: { viewport, colorScheme } });
    await settled(page);
    expect(await page.title()).not.toBe(RUN);
    expect(await page.locator('main').locator('img, script, iframe, b:text-is("agent")').count()).toBe(0);
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    expect(await overflow(page)).toBe(0);
    expect(await coveredControls(page)).toEqual([]);
    expect(await axeViolations(page)).toEqual([]);
    expectNoFaults(page);
  });
});

it('an attribute of 1e308 is shown as that number', async () => {
  const page = await org.open('owner', `/traces/${ids.trace_ids[0] ?? ''}`);
  await settled(page);
  await page.getByRole('region', { name: 'Span', exact: true }).getByRole('tab', { name: 'Attributes' }).click();
  await page.getByText('1e+308').first().waitFor();
  expectNoFaults(page);
});
