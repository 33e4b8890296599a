// Fills the organization that the test files share, so that every page of the portal has something to show: to the runs,
// judges and evals of the demonstration it adds a prompt with calls, an annotation queue, an incident, an agent, an
// endpoint with an attempt, a monitor, a view and a job. Pages are opened as people of each role.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { inject } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { fillQueue } from './annotation.ts';
import { api, openPage, type PageOptions } from './browser.ts';
import { openIncident } from './incidents.ts';
import type { Judged } from './judged.ts';
import { aPerson, type Cookie, type Role } from './person.ts';
import { aPrompt } from './prompts.ts';

/** Ids of what was made. */
export interface Furnished {
  judged: Judged;
  /** Runs of the demonstration. */
  runs: { failed: Run; large: Run; talk: Run };
  prompt: string;
  queue_id: string;
  incident_id: string;
  agent_id: string;
  webhook_id: string;
  monitor_id: string;
  job_id: string;
  /** Opens a page below the organization as the person of a role. */
  open(role: Role, path: string, options?: Pick<PageOptions, 'context'>): Promise<Page>;
}

interface Run {
  trace_id: string;
  session_id: string;
  user_id: string;
}

const DAY_MS = 86_400_000;

/** Makes it. Call it once in a test file. */
export async function furnish(): Promise<Furnished> {
  const { org_id } = inject('portal');
  const cookies = new Map<Role, Cookie>();
  for (const role of ['viewer', 'member', 'admin', 'owner'] as const)
    cookies.set(role, await aPerson(inject('portal'), role));
  const unique = randomUUID().slice(0, 8);
  const agent_id = `furnished-${unique}`;
  const [{ incident_id }] = await Promise.all([
    openIncident({ org_id, data: asKey }, 'no seat in row #', agent_id),
    aPrompt(`furnished/answer-${unique}`, { org_id, api }),
  ]);
  const runs = {
    failed: await runOf('checkout-agent'),
    large: await runOf('document-indexer'),
    talk: await runOf('kitchenware-support'),
  };
  const post = (path: string, body: unknown): Promise<unknown> => asJson(api(path, body));
  return {
    judged: inject('judged'),
    runs,
    prompt: `furnished/answer-${unique}`,
    queue_id: await fillQueue(post, 'single', [...new Set(Object.values(runs).map(({ trace_id }) => trace_id))]),
    incident_id,
    agent_id,
    ...(await keepHouse(agent_id, cookies.get('owner'))),
    open: (role, path, options = {}) => {
      const as = cookies.get(role);
      return openPage({ at: `~${path === '' ? '/' : path}`, ...(as === undefined ? {} : { as }), ...options });
    },
  };
}

const asJson = async (answer: Promise<Response>): Promise<unknown> => (await answer).json();
const asKey = async <T>(_method: string, path: string, body?: unknown): Promise<T> =>
  ((await asJson(api(path, body))) as { data: T }).data;

/** Returns a run of the demonstration. Other files replay runs, and a replay has no session. */
async function runOf(agent_id: string): Promise<Run> {
  const runs = await asKey<{ trace_id: string; session_id: string | null; user_id: string | null }[]>(
    'GET',
    `/v1/traces?limit=50&agent_id=${agent_id}`,
  );
  const run = runs.find((one): one is Run => one.session_id !== null && one.user_id !== null);
  if (run === undefined) throw new Error(`the demonstration sent no run of ${agent_id}`);
  return run;
}

/** Registers the agent, and makes an endpoint with an attempt, a monitor, a view of all people and a job. */
async function keepHouse(
  agent_id: string,
  owner: Cookie | undefined,
): Promise<Pick<Furnished, 'webhook_id' | 'monitor_id' | 'job_id'>> {
  const { url, org_id } = inject('portal');
  const root = `/orgs/${org_id}`;
  const post = <T>(path: string, body: unknown): Promise<T> => asKey('POST', path, body);
  const { register_token } = await post<{ register_token: string }>(`${root}/agents/register-tokens`, {});
  const agent = { agent_id, name: 'Booker', framework: 'custom', version: '1.4.0', tags: ['prod'] };
  await post(`${root}/agents/register`, { ...agent, register_token });
  await post('/v1/views', { name: `Failed ${agent_id}`, page: 'traces', query: 'outcome=error', scope: 'org' });
  const { webhook_id } = await post<{ webhook_id: string }>(`${root}/webhooks`, {
    url: 'https://example.com/hook',
    events: ['cost.forecast_breach'],
    description: 'On-call',
  });
  await post(`${root}/webhooks/${webhook_id}/test`, {});
  const { monitor_id } = await post<{ monitor_id: string }>('/v1/monitors', {
    name: `Failed spans ${agent_id}`,
    query: { view: 'spans', measures: [{ measure: 'errors' }] },
    group_by: ['agent_id'],
    window_minutes: 60,
    threshold: { above: 3 },
    channels: [{ type: 'email', to: ['oncall@example.com'] }],
  });
  // No key may restore texts, so the owner does.
  const day = new Date(Date.now() - 3 * DAY_MS).toISOString().slice(0, 10);
  const answer = await fetch(`${url}${root}/cold-storage/restore`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${owner?.value ?? ''}`,
      'x-org-id': org_id,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
    body: JSON.stringify({ since: day, until: day }),
  });
  const { data } = (await answer.json()) as { data: { job_id: string } };
  const stateOf = async () => (await asKey<{ status: string }>('GET', `/v1/jobs/${data.job_id}`)).status;
  await eventually(async () => (await stateOf()) === 'complete', { what: 'the end of the job' });
  return { webhook_id, monitor_id, job_id: data.job_id };
}

/** Addresses of pages below the organization, by a name for the title of a test. */
export type PageTable = Readonly<Record<string, (made: Furnished) => string>>;

const prompt = (made: Furnished): string => `/prompts/${encodeURIComponent(made.prompt)}`;

/** Every page of an organization with what it shows there. A test compares the table with the pages of the portal. */
export const FURNISHED_PAGES: PageTable = {
  home: () => '',
  start: () => '/start',
  traces: () => '/traces?t=7d',
  'traces without a match': () => '/traces?t=7d&agent_id=nobody',
  'a failed trace': ({ runs }) => `/traces/${runs.failed.trace_id}`,
  'a trace of 2,000 spans': ({ runs }) => `/traces/${runs.large.trace_id}`,
  'the graph of a trace': ({ runs }) => `/traces/${runs.talk.trace_id}?view=graph`,
  'the conversation of a trace': ({ runs }) => `/traces/${runs.talk.trace_id}?view=conversation`,
  'the JSON of a trace': ({ runs }) => `/traces/${runs.talk.trace_id}?view=json`,
  'two traces compared': ({ runs }) => `/compare/${runs.talk.trace_id}/${runs.failed.trace_id}?only=all`,
  search: () => '/search?q=refund',
  sessions: () => '/sessions?t=7d',
  'a session': ({ runs }) => `/sessions/${runs.talk.session_id}`,
  users: () => '/users?t=7d',
  'a user': ({ runs }) => `/users/${runs.talk.user_id}`,
  costs: () => '/costs',
  'the forecast of costs': () => '/costs/forecast',
  budgets: () => '/costs/budgets',
  'anomalies of costs': () => '/costs/anomalies',
  outcomes: () => '/costs/outcomes',
  prices: () => '/costs/prices',
  evals: () => '/evals',
  'a new eval': () => '/evals?new=1',
  'an eval': ({ judged }) => `/evals/${judged.runs[0]}`,
  'an item of an eval': ({ judged }) => `/evals/${judged.runs[0]}?item=1`,
  'a comparison of evals': ({ judged }) => `/evals/compare/${judged.runs.join('/')}`,
  judges: () => '/judges',
  'a new judge': () => '/judges/new',
  'a judge': ({ judged }) => `/judges/${judged.judge_id}`,
  'a judge that is edited': ({ judged }) => `/judges/${judged.judge_id}?edit=1`,
  'the failing traces of a judge': ({ judged }) => `/judges/${judged.judge_id}?tab=traces`,
  'the versions of a judge': ({ judged }) => `/judges/${judged.judge_id}?tab=versions`,
  datasets: () => '/datasets',
  'a dataset': ({ judged }) => `/datasets/${judged.dataset_id}`,
  prompts: () => '/prompts',
  'prompts without a match': () => '/prompts?name=nobody',
  'a prompt': prompt,
  'two versions of a prompt': (made) => `${prompt(made)}?version=2&against=1`,
  'the usage of a prompt': (made) => `${prompt(made)}?view=usage`,
  'the playground of a prompt': (made) => `${prompt(made)}?view=playground`,
  'the annotation queues': () => '/annotate',
  'an annotation queue': ({ queue_id }) => `/annotate/${queue_id}`,
  labelling: ({ queue_id }) => `/annotate/${queue_id}/label`,
  monitors: () => '/monitors',
  'a new monitor': () => '/monitors/new',
  'a monitor': ({ monitor_id }) => `/monitors/${monitor_id}`,
  'a monitor that is edited': ({ monitor_id }) => `/monitors/${monitor_id}?edit=1`,
  incidents: () => '/incidents',
  'incidents without a match': () => '/incidents?agent_id=nobody',
  'an incident': ({ incident_id }) => `/incidents/${incident_id}`,
  agents: () => '/agents',
  'agents that are not registered': () => '/agents?show=unregistered',
  'an agent': ({ agent_id }) => `/agents/${agent_id}`,
  webhooks: () => '/webhooks',
  'dead letters': () => '/webhooks/dead-letters',
  'an endpoint': ({ webhook_id }) => `/webhooks/${webhook_id}`,
  members: () => '/settings',
  roles: () => '/settings/roles',
  'API keys': () => '/settings/keys',
  grants: () => '/settings/grants',
  policy: () => '/settings/policy',
  privacy: () => '/settings/privacy',
  retention: () => '/settings/retention',
  sampling: () => '/settings/sampling',
  plan: () => '/settings/plan',
  'the audit log': () => '/audit',
  jobs: () => '/jobs',
  'a job': ({ job_id }) => `/jobs/${job_id}`,
  'what was granted': () => '/shared',
  preferences: () => '/me',
};
