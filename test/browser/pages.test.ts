// What holds for every page: no error on its console, no breach of its policy, no foreign request,
// WCAG 2.2 AA by axe in both themes, and no sideways scrolling at the width of a phone.
import { beforeAll, describe, expect, it } from 'vitest';
import { api, axeViolations, expectNoFaults, openPage, overflow, settled } from './support/browser.ts';

interface Item {
  trace_id: string;
  session_id: string;
  user_id: string;
}

const ids: Record<string, Item> = {};
const agents = ['checkout-agent', 'document-indexer', 'kitchenware-support'] as const;

beforeAll(async () => {
  for (const agent of agents) {
    const { data } = (await (await api(`/v1/traces?limit=1&agent_id=${agent}`)).json()) as { data: Item[] };
    const [item] = data;
    if (item === undefined) throw new Error(`the demonstration sent no run of ${agent}`);
    ids[agent] = item;
  }
});

const of = (agent: (typeof agents)[number]): Item => {
  const item = ids[agent];
  if (item === undefined) throw new Error(`no run of ${agent}`);
  return item;
};

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
  search: () => '~/search?q=refund',
  sessions: () => '~/sessions?t=7d',
  'a session': () => `~/sessions/${of('kitchenware-support').session_id}`,
  users: () => '~/users?t=7d',
  'a user': () => `~/users/${of('kitchenware-support').user_id}`,
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
