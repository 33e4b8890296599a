// The portal while something is wrong: the store or NATS is away, the rate is used up, the session ended, the live
// stream is cut, answers are slow, the tab slept. Each page says what is happening, keeps what was typed, and goes on
// by itself. On a service of this file, whose processes are stopped by their ids.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stopServices } from '../support/service_process.ts';
import { eventually } from '../support/wait.ts';
import { api, axeViolations, openPage, settled } from './support/browser.ts';
import { aPerson, type Cookie } from './support/person.ts';
import { type PortalService, startPortalService } from './support/portal_service.ts';
import { freeze } from './support/processes.ts';
import { type PortalProxy, startPortalProxy } from './support/proxy.ts';

let portal: PortalService;
let proxy: PortalProxy;

beforeAll(async () => {
  portal = await startPortalService();
  proxy = await startPortalProxy(portal);
  await land('the-first-run');
});
afterAll(async () => {
  await proxy.close();
  await stopServices();
});

/** Sends a trace and resolves once it is listed. */
async function land(trace_id: string): Promise<void> {
  await api(
    `/orgs/${portal.org_id}/ingest/custom`,
    { events: [{ name: trace_id, trace_id, session_id: 'session-1', outcome: 'success', duration_ms: 5 }] },
    portal,
  );
  await eventually(
    async () => {
      const { data } = (await (await api(`/v1/traces?trace_ids=${trace_id}`, undefined, portal)).json()) as {
        data: unknown[];
      };
      return data.length === 1;
    },
    { what: trace_id },
  );
}

const at = (path: string): string => `/o/${portal.org_id}${path}`;
const row = (page: Page, name: string) => page.getByRole('grid').getByRole('link', { name });
const banner = (page: Page, text: string) => page.getByRole('status').filter({ hasText: text });
/** The form of a new prompt with a name and a template that somebody has typed. */
async function typedPrompt(page: Page, name: string): Promise<void> {
  await settled(page);
  await page.getByRole('button', { name: 'Create prompt' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Create prompt' });
  await dialog.getByLabel('Name').fill(name);
  await dialog.getByRole('textbox', { name: 'Template' }).fill('Answer {{question}}');
}

it('while the store is away the page says so, and shows its rows by itself once the store answers', async () => {
  const page = await openPage({ at: at('/me'), portal });
  await settled(page);
  const thaw = freeze(portal, 'clickhouse');
  try {
    await page.getByRole('link', { name: 'Traces', exact: true }).click();
    await banner(page, 'The store does not answer').waitFor();
    expect(await page.getByRole('heading', { level: 1, name: 'Traces' }).count()).toBe(1);
    expect(await axeViolations(page)).toEqual([]);
    // Ingest goes on, as the page says.
    await api(`/orgs/${portal.org_id}/ingest/custom`, { events: [{ name: 'kept', outcome: 'success' }] }, portal);
    // Pages that need no store work.
    await page.getByRole('link', { name: 'Prompts', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Prompts' }).waitFor();
    await page.getByRole('link', { name: 'Traces', exact: true }).click();
  } finally {
    thaw();
  }
  await row(page, 'the-first-run').waitFor();
  await banner(page, 'The store does not answer').waitFor({ state: 'detached' });
});

it('while answers lack rows of a shard the page says so, and reads again until they are whole', async () => {
  const page = await openPage({ at: at('/me'), portal });
  await settled(page);
  await page.route(
    ({ pathname }) => pathname === '/v1/traces',
    async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { data: unknown[]; meta: object };
      await route.fulfill({ response, json: { data: [], meta: { ...body.meta, partial: true } } });
    },
  );
  await page.getByRole('link', { name: 'Traces', exact: true }).click();
  await banner(page, 'Part of the store does not answer').waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await page.unrouteAll({ behavior: 'wait' });
  await row(page, 'the-first-run').waitFor();
  await banner(page, 'Part of the store does not answer').waitFor({ state: 'detached' });
});

it('while NATS is away a form says so and keeps what was typed, and saves it once NATS is back', async () => {
  const page = await openPage({ at: at('/prompts'), portal });
  const name = `nats-away-${randomUUID().slice(0, 8)}`;
  await typedPrompt(page, name);
  const dialog = page.getByRole('dialog', { name: 'Create prompt' });
  const thaw = freeze(portal, 'nats');
  try {
    await page.keyboard.press('Control+Enter');
    await dialog.getByRole('alert').waitFor();
    await banner(page, 'The service does not reach NATS').waitFor();
    expect(await dialog.getByLabel('Name').inputValue()).toBe(name);
  } finally {
    thaw();
  }
  await banner(page, 'The service does not reach NATS').waitFor({ state: 'detached' });
  await eventually(
    async () => {
      const save = dialog.getByRole('button', { name: 'Create prompt' });
      if (await save.isEnabled({ timeout: 1000 }).catch(() => false)) await page.keyboard.press('Control+Enter');
      return (await page.getByRole('heading', { level: 1, name }).count()) === 1;
    },
    { what: 'the saved prompt' },
  );
});

/** Uses up the rate of a person until the returned function is called. */
function useUp({ name, value }: Cookie): () => Promise<void> {
  let goes = true;
  const ask = async (): Promise<void> => {
    const headers = { cookie: `${name}=${value}`, 'sec-fetch-site': 'same-origin', 'x-org-id': portal.org_id };
    while (goes) await (await fetch(`${portal.url}/v1/views`, { headers })).text();
  };
  const asking = Array.from({ length: 8 }, ask);
  return async () => {
    goes = false;
    await Promise.all(asking);
  };
}

it('a page whose rate is used up counts down by Retry-After and shows its rows by itself', async () => {
  const person = await aPerson(portal);
  const page = await openPage({ at: at('/me'), as: person, portal });
  await settled(page);
  const stop = useUp(person);
  try {
    await eventually(
      async () => {
        const headers = { cookie: `${person.name}=${person.value}`, 'sec-fetch-site': 'same-origin' };
        const answer = await fetch(`${portal.url}/v1/views`, { headers: { ...headers, 'x-org-id': portal.org_id } });
        return answer.status === 429 && answer.headers.has('retry-after');
      },
      { what: 'a used-up rate' },
    );
    await page.getByRole('link', { name: 'Traces', exact: true }).click();
    await page
      .getByText(/Too many requests: .* must wait/)
      .first()
      .waitFor();
    await page.getByRole('button', { name: /Retry/ }).first().waitFor();
  } finally {
    await stop();
  }
  await row(page, 'the-first-run').waitFor();
});

it('a session that ends in the middle of an edit asks for a login over the page, and the edit is saved', async () => {
  const person = await aPerson(portal);
  const page = await openPage({ at: at('/prompts'), as: person, portal });
  const name = `session-ended-${randomUUID().slice(0, 8)}`;
  await typedPrompt(page, name);
  await page.context().clearCookies();
  await page.keyboard.press('Control+Enter');
  const login = page.getByRole('dialog', { name: 'Your session has ended' });
  await login.getByRole('textbox', { name: 'Token' }).fill(person.value);
  expect(await axeViolations(page)).toEqual([]);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name }).waitFor();
  // It was saved once.
  const { data } = (await (await api(`/v1/prompts/${name}`, undefined, portal)).json()) as { data: unknown };
  expect(JSON.stringify(data)).toContain('Answer {{question}}');
});

it('a live list whose stream is cut says so, connects again and shows what landed meanwhile', async () => {
  const page = await openPage({ at: at('/traces?live=1'), portal: proxy.portal });
  await row(page, 'the-first-run').waitFor();
  await eventually(() => proxy.open('/v1/live') > 0, { what: 'an open stream' });
  proxy.cut('/v1/live');
  await banner(page, 'Live updates have stopped').waitFor();
  await land('while-cut');
  expect(await row(page, 'while-cut').count()).toBe(0);
  proxy.cut(null);
  await row(page, 'while-cut').waitFor();
  await banner(page, 'Live updates have stopped').waitFor({ state: 'detached' });
});

it('while answers take five seconds the page follows clicks at once and says that the service is slow', async () => {
  const page = await openPage({ at: at('/me'), portal: proxy.portal });
  await settled(page);
  proxy.delay(5000);
  try {
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Sessions' }).waitFor();
    await banner(page, 'The service is slow to answer').waitFor();
    // A page that is left does not hold up the next one.
    await page.getByRole('link', { name: 'Traces', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Traces' }).waitFor();
    await row(page, 'the-first-run').waitFor();
  } finally {
    proxy.delay(0);
  }
  await banner(page, 'The service is slow to answer').waitFor({ state: 'detached' });
});

/** Hides the tab, as the browser does when another one is chosen, or shows it again. */
const setVisible = (page: Page, visible: boolean): Promise<void> =>
  page.evaluate(
    (state) => {
      Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => state });
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
    },
    visible ? 'visible' : 'hidden',
  );

it('a tab that slept for an hour keeps no connection meanwhile, and shows what landed when it is seen again', async () => {
  const page = await openPage({ at: at('/me'), portal: proxy.portal });
  await settled(page);
  await page.clock.install();
  await page.getByRole('link', { name: 'Traces', exact: true }).click();
  await row(page, 'the-first-run').waitFor();
  await eventually(() => proxy.open('/v1/live') > 0, { what: 'an open stream' });
  await setVisible(page, false);
  await eventually(() => proxy.open('/v1/live') === 0, { what: 'a closed stream' });
  await land('while-asleep');
  await page.clock.fastForward('01:00:00');
  expect(await row(page, 'while-asleep').count()).toBe(0);
  await setVisible(page, true);
  await eventually(
    async () => {
      const waiting = page.getByRole('button', { name: /new/ });
      if ((await waiting.count()) > 0) await waiting.first().click();
      return (await row(page, 'while-asleep').count()) > 0;
    },
    { what: 'the trace that landed meanwhile' },
  );
  expect(await page.getByRole('dialog').count()).toBe(0);
});
