// An organization that floods the log is throttled, and no other organization is. No worker lands
// events here; the test itself reports them as landed.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BACKLOG_MIN } from '../../../api/admission/backlog_shares.ts';
import { reportLanded } from '../../../ops/exchange/landing_reports.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { type Account, anAccount } from '../a_tenant.ts';
import { anEvent, type Answer, call, INGEST, startTestApi, type TestApi } from './an_api.ts';

const PARTITIONS = 4;
const BATCH_BYTES = 1024 * 1024;

let nats: TestNats;
let api: TestApi;
let quiet: Account;

beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url });
  quiet = await anAccount({ api });
});

afterAll(async () => {
  await api.close();
  await nats.remove();
});

let sent = 0;
/** Returns a batch of ten large events, each in a trace of its own. */
const batch = (): unknown => ({
  events: Array.from({ length: 10 }, () =>
    anEvent({ name: `n${sent++}`, attributes: { input: 'x'.repeat(BATCH_BYTES / 10) } }),
  ),
});
const asNoisy = (): Promise<Answer> => call(api, 'POST', `${INGEST}/custom`, { body: batch() });
const asQuiet = (): Promise<Answer> =>
  call(api, 'POST', `/orgs/${quiet.org}/ingest/custom`, {
    body: anEvent({ name: `n${sent++}` }),
    headers: quiet.key,
  });

test('an organization above its share of the log waits until its events have landed, and others do not', async () => {
  expect((await asQuiet()).status).toBe(200);
  const answers: Answer[] = [];
  // Each batch is small compared with the backlog that is allowed; together they exceed it.
  while (answers.length <= (4 * BACKLOG_MIN) / BATCH_BYTES && answers.at(-1)?.status !== 429)
    answers.push(await asNoisy());
  const last = answers.pop();
  expect(answers.length).toBeGreaterThan(1);
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(last?.status).toBe(429);
  expect(last?.headers.get('Retry-After')).toBe('1');
  expect(last?.json).toMatchObject({ code: 'rate_limited' });
  expect((await asQuiet()).status).toBe(200);

  const { state } = await api.log.jsm.streams.info('INGEST');
  const through = { landed_through: state.last_seq, read_through: state.last_seq };
  const landings = Array.from({ length: PARTITIONS }, (_, partition) => ({
    partition,
    epoch: 1,
    ...through,
    behind: false,
    after: 0,
    log_seq: 0,
    rows: [],
  }));
  await eventually(async () => {
    reportLanded(api.log.nc, landings);
    return (await asNoisy()).status === 200;
  });
});
