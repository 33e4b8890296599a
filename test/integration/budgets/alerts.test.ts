// Budget alerts to the owner's mailbox and to a signed webhook, once for each threshold and cause,
// and the test action.
import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { type Mailbox, startMailbox } from '../../support/mailbox.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { onceFree } from '../api/a_job.ts';
import { ADMIN_TOKEN, type Answer, call, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

interface Hook {
  body: string;
  signature: string;
  event_id: string;
}

let database: TestDatabase;
let nats: TestNats;
let api: TestApi;
let worker: TestWorker;
let receiver: Server;
let mailbox: Mailbox;
const hooks: Hook[] = [];
let url = '';
let more: Record<string, string>;

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  receiver = createServer((req, res) => {
    let body = '';
    req.on('data', (chunk: Buffer) => (body += chunk.toString()));
    req.on('end', () => {
      hooks.push({
        body,
        signature: String(req.headers['x-service-signature']),
        event_id: String(req.headers['x-service-event-id']),
      });
      res.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/alerts`;
  mailbox = await startMailbox();
  more = { SERVICE_SMTP_URL: mailbox.url };
  const options = { natsUrl: nats.url, clickhouseUrl: database.url };
  api = await startTestApi(options);
  worker = startWorker({ ...options, more });
  await worker.ready;
}, 60_000);

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await api.close();
  await nats.remove();
  await database.drop();
  receiver.closeAllConnections();
  receiver.close();
  await mailbox.close();
});

const ALERTS = `/orgs/${ORG}/budget/alerts`;
const set = (body: unknown, path = ALERTS): Promise<Answer> => call(api, 'POST', path, { body });
const threshold = (percent: number, severity = 'warning') => ({ resource: 'tokens', percent, severity });
const code = (answer: Answer) => `${answer.status} ${(answer.json?.['code'] ?? '') as string}`.trim();
const data = (answer: Answer) => answer.json?.['data'] as Record<string, unknown>;
let sent = 0;

async function use(tokens: number): Promise<void> {
  sent++;
  const body = {
    request: { model: 'gpt-4o', messages: [{ role: 'user', content: `q ${sent}` }] },
    response: { choices: [], usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens } },
    duration_ms: 1,
    outcome: 'success',
  };
  expect((await call(api, 'POST', `/orgs/${ORG}/ingest/chatcompletion`, { body })).status).toBe(200);
}

const job = async (name: string, now?: string): Promise<Record<string, unknown>> => {
  const answer = await onceFree(() =>
    call(api, 'POST', `/admin/jobs/${name}/run`, {
      headers: { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` },
      body: now === undefined ? {} : { now },
    }),
  );
  expect(answer.status).toBe(200);
  return data(answer)['result'] as Record<string, unknown>;
};
const percents = (cause?: string) =>
  hooks
    .map(({ body }) => JSON.parse(body) as { percent: number; cause: string; test?: boolean })
    .filter((hook) => hook.test !== true && (cause === undefined || hook.cause === cause))
    .map(({ percent }) => percent);

test('a threshold outside 0 to 100, an unknown channel, and a webhook without an address are rejected', async () => {
  for (const percent of [0, 100, -5, 120])
    expect(code(await set({ channels: ['email'], thresholds: [threshold(percent)] }))).toBe('422 invalid_threshold');
  expect(code(await set({ channels: ['slack'], thresholds: [] }))).toBe('422 invalid_request');
  expect(code(await set({ channels: ['webhook'], thresholds: [] }))).toBe('422 invalid_request');
  expect(code(await set({ channels: ['webhook'], thresholds: [], webhook_url: 'ftp://example.com' }))).toBe(
    '422 invalid_request',
  );
  expect(
    code(await set({ channels: ['email'], thresholds: [{ resource: 'gpus', percent: 5, severity: 'info' }] })),
  ).toBe('422 invalid_request');
  expect(code(await call(api, 'POST', `${ALERTS}/test`))).toBe('409 conflict');
});

test('an alert is sent once for each threshold, to the owner and to a webhook whose secret is shown once', async () => {
  await call(api, 'PUT', `/orgs/${ORG}/budget`, { body: { tokens: { hard_limit: 1000 } } });
  const config = {
    channels: ['email', 'webhook'],
    thresholds: [threshold(50, 'info'), threshold(90)],
    webhook_url: url,
  };
  const made = await set(config);
  expect(made.status).toBe(201);
  const secret = String(data(made)['secret']);
  expect(secret).toMatch(/^whsec_/);
  // The same URL keeps its secret when it is set through the other path.
  expect(data(await set(config, `/v1/budgets/${ORG}/alerts`))).not.toHaveProperty('secret');
  expect(data(await call(api, 'GET', `/v1/budgets/${ORG}/alerts`))).toMatchObject(config);

  await use(600);
  await eventually(() => hooks.length === 1 && mailbox.mails.length === 1, { what: 'the first threshold told' });
  await use(350);
  await eventually(() => hooks.length === 2 && mailbox.mails.length === 2, { what: 'the second threshold told' });
  expect(percents()).toEqual([50, 90]);
  const [first] = hooks;
  const payload = JSON.parse(first?.body ?? '') as Record<string, unknown>;
  expect(payload).toMatchObject({
    event: 'budget.threshold_breach',
    org_id: ORG,
    resource: 'tokens',
    percent: 50,
    used: 600,
    hard_limit: 1000,
    severity: 'info',
  });
  expect(payload).toHaveProperty('period_start');
  expect(payload).toHaveProperty('request_id');
  const [, t = '', v1 = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(first?.signature ?? '') ?? [];
  expect(
    createHmac('sha256', secret)
      .update(`${t}.${first?.body ?? ''}`)
      .digest('hex'),
  ).toBe(v1);
  expect(mailbox.mails[0]).toContain('To: owner@localhost.localdomain');
  expect(mailbox.mails[0]).toMatch(/Subject: \[info\] .*tokens at 50 %/);
});

test('no alert is sent again after a restart', async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url, more });
  await worker.ready;
  expect(await job('alerts')).toMatchObject({ orgs: 1, alerts: 0 });
  await set({
    channels: ['webhook'],
    thresholds: [threshold(50, 'info'), threshold(90), threshold(93), threshold(93, 'critical')],
    webhook_url: url,
  });
  await eventually(() => hooks.length === 4, { what: 'both severities of the new threshold' });
  expect(percents()).toEqual([50, 90, 93, 93]);
  expect(
    hooks
      .slice(2)
      .map(({ body }) => (JSON.parse(body) as { severity: string }).severity)
      .sort(),
  ).toEqual(['critical', 'warning']);
  expect(mailbox.mails).toHaveLength(2);
});

test('a run rate that will reach a threshold is reported before it does, once', async () => {
  await call(api, 'PUT', `/orgs/${ORG}/budget`, { body: { tokens: { hard_limit: 100_000_000 } } });
  await use(1_000_000);
  await eventually(
    async () =>
      ((await call(api, 'GET', '/v1/budgets')).json?.['data'] as { tokens: { used: number } }).tokens.used >= 1_000_950,
    { what: 'landed' },
  );
  const now = new Date();
  // On the second day of the month the run rate is one day's use, so the projection for the month
  // is thirty times that.
  const early = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 2)).toISOString();
  await set({ channels: ['webhook'], thresholds: [threshold(20)], webhook_url: url });
  expect(await job('alerts', early)).toMatchObject({ orgs: 1, alerts: 1 });
  await eventually(() => percents('projected').length === 1, { what: 'the projection told' });
  expect(await job('alerts', early)).toMatchObject({ alerts: 0 });
});

test('the test action uses every channel, signed, and says that it is a test', async () => {
  await set({ channels: ['email', 'webhook'], thresholds: [threshold(50)], webhook_url: url });
  const before = { hooks: hooks.length, mails: mailbox.mails.length };
  const answer = await call(api, 'POST', `${ALERTS}/test`);
  expect(data(answer)).toMatchObject({ sent: ['email', 'webhook'] });
  await eventually(() => hooks.length > before.hooks && mailbox.mails.length > before.mails, { what: 'the test told' });
  expect(JSON.parse(hooks.at(-1)?.body ?? '')).toMatchObject({ event: 'budget.threshold_breach', test: true });
  expect(hooks.at(-1)?.event_id).toBe(data(answer)['event_id']);
  expect(mailbox.mails.at(-1)).toContain('Subject: [test]');
});

test('a new period sends its alerts again', async () => {
  const now = new Date();
  const next = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)).toISOString();
  expect(await job('budget-period', next)).toMatchObject({ orgs: 1 });
  expect(await job('budget-period', next)).toMatchObject({ orgs: 0 });
});
