// Notices of monitors reach a mailbox and an endpoint once for each change, also when the worker is
// killed between the evaluation and the notice, or between the notice and its record.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Mailbox, startMailbox } from '../../support/mailbox.ts';
import { startReceiver, type Receiver } from '../../support/receiver.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { aTenant } from '../a_tenant.ts';
import type { TestApi } from '../api/an_api.ts';
import { createMonitor, evaluate, getMonitor, sendFailures } from './a_monitor.ts';

let service: TestService;
let api: TestApi;
let mailbox: Mailbox;
let receiver: Receiver;

beforeAll(async () => {
  [mailbox, receiver] = await Promise.all([startMailbox(), startReceiver()]);
  service = await TestService.start({ worker: { SERVICE_SMTP_URL: mailbox.url } });
  api = await service.startApi();
});
afterAll(async () => {
  await service.close();
  await mailbox.close();
  await receiver.close();
});

/** Evaluates the monitors in a process that is killed at its first notice. */
async function evaluateAndDie(place: 'before' | 'after'): Promise<void> {
  const { natsUrl, clickhouseUrl } = service.urls;
  const child = fork(new URL('../../support/monitor_worker.ts', import.meta.url), {
    env: { ...process.env, TEST_NATS_URL: natsUrl, TEST_CLICKHOUSE_URL: clickhouseUrl, TEST_PLACE: place },
  });
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
}

const headerOf = (mail: string, name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(mail)?.[1] ?? '';

it.each(['before', 'after'] as const)(
  'a change reaches webhook and mail once when the worker is killed %s the notice is sent',
  async (place) => {
    const tenant = await aTenant({ api, database: service.database });
    const to = `oncall+${place}@example.com`;
    const body = { url: `${receiver.url}/${place}`, events: ['monitor.alerting', 'monitor.resolved'] };
    await tenant.call('POST', `/orgs/${tenant.org}/webhooks`, { body });
    await sendFailures(tenant, { ann: 4, bob: 1 });
    // The scheduled run of the worker would evaluate the monitor too.
    await service.killWorker();
    const monitor = await createMonitor(tenant, {
      name: `Failures ${place}`,
      severity: 'critical',
      channels: [{ type: 'email', to: [to] }],
    });
    await evaluateAndDie(place);
    await service.startWorker();
    await evaluate(api);
    await evaluate(api);
    const mails = () => mailbox.mails.filter((mail) => headerOf(mail, 'To') === to);
    await eventually(() => mails().length > 0 && receiver.at(`/${place}`).length > 0, { what: 'mail and webhook' });
    const patch = { threshold: { above: 10 } };
    expect((await tenant.call('PATCH', `/v1/monitors/${monitor.monitor_id}`, { body: patch })).status).toBe(200);
    await evaluate(api);
    await eventually(() => mails().length > 1 && receiver.at(`/${place}`).length > 1, { what: 'the end of the alert' });
    await evaluate(api);
    expect(mails().map((mail) => headerOf(mail, 'Subject'))).toEqual([
      `[critical] Failures ${place} (user_id ann)`,
      `[resolved] Failures ${place} (user_id ann)`,
    ]);
    expect(new Set(mails().map((mail) => headerOf(mail, 'Message-ID'))).size).toBe(2);
    expect(mails()[0]).toContain('Value: 4 (sum of errors over 60 minutes).');
    expect(receiver.at(`/${place}`).map(({ json }) => json['event'])).toEqual(['monitor.alerting', 'monitor.resolved']);
    const told = (await toldEvents(api.log, tenant.org)).filter(({ event }) => event.startsWith('monitor.'));
    expect(told.map(({ event }) => event)).toEqual(['monitor.alerting', 'monitor.resolved']);
    expect(await getMonitor(tenant, monitor)).toMatchObject({ state: 'ok' });
  },
);
