// Dead letters in the browser: an event that could not be delivered is read, and sent again alone or with all of its
// endpoint, by an admin; an event that the pipeline could not process is replayed by the operator.
import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freshDelivery, publishDelivery } from '../../ops/exchange/webhook_queue.ts';
import { deadEvent } from '../support/dead_letters.ts';
import { type Receiver, startReceiver, status } from '../support/receiver.ts';
import { eventually } from '../support/wait.ts';
import { axeViolations, expectNoFaults, overflow, settled } from './support/browser.ts';
import { operatorPage, withLog } from './support/operator.ts';
import { OwnOrg } from './support/own_org.ts';

const HOSTILE = `<img src=x onerror="document.title='run'"> \u202eabc ${'w'.repeat(300)}`;
const DAY_MS = 86_400_000;

let org: OwnOrg;
let receiver: Receiver;
let made = 0;

beforeAll(async () => {
  [org, receiver] = await Promise.all([OwnOrg.make(), startReceiver()]);
});
afterAll(() => receiver.close());

interface Endpoint {
  webhook_id: string;
  url: string;
  path: string;
}

/** Creates an endpoint whose receiver fails, with events whose last attempt was its last. */
async function failing(letters: number): Promise<Endpoint> {
  const path = `/hook-${++made}-${Date.now()}`;
  const url = receiver.url + path;
  receiver.behave(path, status(503));
  const root = `/orgs/${org.org_id}/webhooks`;
  const { webhook_id } = await org.data<{ webhook_id: string }>('POST', root, { url, events: ['incident.created'] });
  const began = Date.now() - DAY_MS;
  await withLog(async (log) => {
    for (let n = 0; n < letters; n += 1) {
      const event_id = `evt_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
      const body = JSON.stringify({ event_id, event: 'incident.created', error: `${n} ${HOSTILE}` });
      const first = freshDelivery({
        event_id,
        event: 'incident.created',
        org_id: org.org_id,
        target_kind: 'endpoint',
        target_id: webhook_id,
        body,
        created_at: began,
      });
      // The attempts of 24 hours are over: the next one that fails is the last.
      await publishDelivery(log, { ...first, attempt: 9, first_attempt_at: began }, 'last');
    }
  });
  await eventually(
    async () => (await org.data<unknown[]>('GET', `${root}/dead-letters?webhook_id=${webhook_id}`)).length === letters,
    { what: 'the dead letters', withinMs: 60_000 },
  );
  receiver.received.length = 0;
  return { webhook_id, url, path };
}

const letters = (page: Page) => page.getByRole('list', { name: 'Dead letters' }).getByRole('listitem');

it('an event is found from the first page, read with its payload, and sent again by one button', async () => {
  const { webhook_id, path, url } = await failing(2);
  await org.data('POST', `/orgs/${org.org_id}/ingest/custom`, { events: [{ name: 'a run', outcome: 'success' }] });
  await eventually(async () => (await org.data<unknown[]>('GET', '/v1/traces?limit=1')).length === 1);
  const page = await org.open('admin', '');
  await page.getByRole('link', { name: /not delivered/ }).click();
  await page.getByRole('combobox', { name: 'Endpoint' }).selectOption({ label: url });
  await page.getByText('2 dead letters', { exact: true }).waitFor();
  const first = letters(page).first();
  await first.getByText(/Status 503, 10 attempts/).waitFor();
  await first.getByText('Payload').click();
  await first
    .getByText(/<img src=x/)
    .first()
    .waitFor();
  expect(await page.title()).not.toContain('run');
  receiver.behave(path, status(200));
  await first.getByRole('button', { name: /^Replay event incident\.created / }).press('Enter');
  await page.getByText('The event is queued again.').waitFor();
  // The message with the link goes after some seconds.
  await page.getByRole('link', { name: 'Show in the audit log' }).click();
  await page.getByRole('grid', { name: 'Audit log' }).getByText('webhook.replay').first().waitFor();
  await page.getByRole('grid', { name: 'Audit log' }).getByRole('link', { name: webhook_id }).first().waitFor();
  await page.goBack();
  await page.getByText('1 dead letter', { exact: true }).waitFor();
  await eventually(() => receiver.at(path).length === 1, { what: 'the replayed event' });
  expectNoFaults(page);
});

it('all dead letters of an endpoint are sent again, and a disabled endpoint says that it must be enabled', async () => {
  const { webhook_id, path } = await failing(3);
  const root = `/orgs/${org.org_id}/webhooks/${webhook_id}`;
  await org.data('PATCH', root, { enabled: false });
  const page = await org.open('admin', `/webhooks/${webhook_id}?tab=letters`);
  await page.getByText('Enable the endpoint to replay its dead letters.').waitFor();
  expect(await page.getByRole('button', { name: /^Replay/ }).count()).toBe(0);
  await page.getByRole('button', { name: 'Enable endpoint' }).click();
  receiver.behave(path, status(200));
  await page.getByRole('button', { name: 'Replay all of this endpoint' }).click();
  await page.getByText('3 events are queued again.').waitFor();
  await page.getByText('No dead letters', { exact: true }).waitFor();
  await eventually(() => receiver.at(path).length === 3, { what: 'the replayed events' });
  expectNoFaults(page);
});

it.each(['light', 'dark'] as const)(
  'a dead letter is accessible in the %s theme at 320 pixels',
  async (colorScheme) => {
    const { webhook_id } = await failing(1);
    const context = { colorScheme, viewport: { width: 320, height: 700 } };
    const page = await org.open('admin', `/webhooks/dead-letters?webhook_id=${webhook_id}`, { context });
    await page.getByText('Payload').click();
    await settled(page);
    expect(await overflow(page)).toBe(0);
    expect(await axeViolations(page)).toEqual([]);
    expectNoFaults(page);
  },
);

it('the operator replays every event that is shown, and each of them lands', async () => {
  const trace_ids = Array.from({ length: 3 }, () => `dead-${randomUUID()}`);
  await withLog(async (log) => {
    for (const trace_id of trace_ids) await deadEvent(log, { org_id: org.org_id, trace_id, detail: HOSTILE });
  });
  const page = await operatorPage(`dead-letters?org_id=${org.org_id}`);
  await page.getByRole('button', { name: 'Replay 3 shown' }).click();
  await page.getByText('3 events are replayed.').waitFor();
  await page.getByText('No dead letter matches').waitFor();
  for (const trace_id of trace_ids)
    await eventually(async () => (await org.call('GET', `/v1/traces/${trace_id}`)).status === 200, { what: trace_id });
  expect(await page.title()).not.toContain('run');
  expectNoFaults(page);
});
