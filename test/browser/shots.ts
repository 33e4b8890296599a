// `npm run portal:shots [-- folder]`: writes a picture of every page of the portal, in both themes
// and at three widths, for a person to look at. Starts a service with the data of the demonstration.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { findChromium } from '../support/chromium/install.ts';
import { stopServices } from '../support/service_process.ts';
import { settled, watchRequests } from './support/settled.ts';
import { type PortalService, sendDemo, startPortalService } from './support/portal_service.ts';

const WIDTHS = [1440, 1024, 390];
const THEMES = ['light', 'dark'] as const;
const HEIGHT = 900;

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

/** Returns the path of every picture's page, by the name of its file. */
async function pages(portal: PortalService): Promise<Record<string, string>> {
  const org = `/o/${portal.org_id}`;
  const failed = await itemOf(portal, 'agent_id=checkout-agent');
  const large = await itemOf(portal, 'agent_id=document-indexer');
  const idle = await itemOf(portal, 'agent_id=office-assistant');
  const talk = await itemOf(portal, 'agent_id=kitchenware-support');
  return {
    login: '/login',
    home: org,
    start: `${org}/start`,
    traces: `${org}/traces?t=7d`,
    traces_filtered: `${org}/traces?t=7d&outcome=error`,
    traces_none: `${org}/traces?t=7d&agent_id=nobody`,
    trace_failed: `${org}/traces/${failed.trace_id}`,
    trace_large: `${org}/traces/${large.trace_id}`,
    trace_idle: `${org}/traces/${idle.trace_id}`,
    trace_graph: `${org}/traces/${large.trace_id}?view=graph`,
    trace_conversation: `${org}/traces/${talk.trace_id}?view=conversation`,
    trace_json: `${org}/traces/${talk.trace_id}?view=json`,
    search: `${org}/search?q=refund`,
    sessions: `${org}/sessions`,
    session: `${org}/sessions/${talk.session_id ?? ''}`,
    users: `${org}/users`,
    user: `${org}/users/${talk.user_id ?? ''}`,
    me: `${org}/me`,
    not_found: `${org}/nothing-here`,
  };
}

async function picture(page: Page, at: string, file: string): Promise<void> {
  await page.goto(at);
  await settled(page);
  await page.screenshot({ path: file });
}

async function main(folder: string): Promise<void> {
  const { executable, env } = await findChromium(console.log);
  mkdirSync(folder, { recursive: true });
  const portal = await startPortalService();
  await sendDemo(portal);
  const browser: Browser = await chromium.launch({
    executablePath: executable,
    env: { ...process.env, ...env },
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  const all = await pages(portal);
  for (const colorScheme of THEMES) {
    for (const width of WIDTHS) {
      const context = await browser.newContext({
        baseURL: portal.url,
        colorScheme,
        viewport: { width, height: HEIGHT },
      });
      await context.addCookies([{ ...portal.cookie, url: portal.url, httpOnly: true, sameSite: 'Strict' }]);
      const page = await context.newPage();
      watchRequests(page);
      for (const [name, at] of Object.entries(all))
        await picture(page, at, path.join(folder, `${name}_${colorScheme}_${width}.png`));
      await context.close();
    }
  }
  await browser.close();
  console.log(`${Object.keys(all).length * THEMES.length * WIDTHS.length} pictures in ${folder}`);
}

try {
  await main(path.resolve(process.argv[2] ?? 'data/shots'));
} finally {
  await stopServices();
}
