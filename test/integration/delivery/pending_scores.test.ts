// Scores that come before their trace: they wait in the log, are attached when the trace arrives,
// also when the worker is killed in between, and become dead letters after a day.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { againMs, PendingScores, WAIT_MS_MAX } from '../../../pipeline/delivery/pending_scores.ts';
import { deadLetterCodec, FINGERPRINT_HEADER, userScoreCodec } from '../../../schemas/codec.ts';
import { DEAD_LETTERS_STREAM, PENDING_SCORES_ORG_MAX, PENDING_SCORES_STREAM } from '../../../schemas/streams.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, INGEST, startTestApi, type TestApi } from '../api/an_api.ts';

let nats: TestNats;
let database: TestDatabase;
let worker: TestWorker;
let api: TestApi;

const start = async () => {
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
  await worker.ready;
};
const stop = async (signal: NodeJS.Signals) => {
  worker.kill(signal);
  await worker.exited;
};

beforeAll(async () => {
  [nats, database] = await Promise.all([startTestNats(), createTestDatabase()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  await start();
});
afterAll(async () => {
  await stop('SIGTERM');
  await api.close();
  await database.drop();
  await nats.remove();
});

const give = (trace_id: string, value: number): Promise<Answer> =>
  call(api, 'POST', '/v1/scores', { body: { trace_id, name: 'stars', value } });
const send = (trace_id: string) =>
  call(api, 'POST', `${INGEST}/custom`, {
    body: { events: [{ name: 'step', outcome: 'success', duration_ms: 1, trace_id }] },
  });
const valuesOf = async (trace_id: string) => {
  const { status, json } = await call(api, 'GET', `/v1/scores?trace_id=${trace_id}`);
  return status === 200 ? (json?.['data'] as { value: number }[]).map(({ value }) => value).sort() : [];
};
const waiting = async () => (await api.log.jsm.streams.info(PENDING_SCORES_STREAM)).state.messages;

describe('a score that comes before its trace', () => {
  it('is attached when the trace arrives', async () => {
    const given = await give('later', 4);
    expect([given.status, given.json?.['data']]).toMatchObject([201, { pending: true, source: 'user', value: 4 }]);
    expect(await waiting()).toBe(1);
    expect((await send('later')).status).toBe(200);
    await eventually(async () => (await valuesOf('later')).length === 1);
    expect(await valuesOf('later')).toEqual([4]);
    await eventually(async () => (await waiting()) === 0);
  });

  it('is attached once when the worker is killed before and after the trace arrives', async () => {
    await Promise.all([give('killed', 1), give('killed', 2), give('killed', 3)]);
    await stop('SIGKILL');
    expect((await send('killed')).status).toBe(200);
    await start();
    await eventually(async () => (await valuesOf('killed')).length > 0);
    await stop('SIGKILL');
    await start();
    await eventually(async () => (await waiting()) === 0);
    await eventually(async () => (await valuesOf('killed')).length >= 3);
    expect(await valuesOf('killed')).toEqual([1, 2, 3]);
  });

  it('becomes a dead letter when its trace has not arrived after 24 hours', async () => {
    await stop('SIGTERM');
    await give('never', 5);
    const clickhouse = createClickHouse({ url: database.url });
    const tomorrow = new PendingScores({
      log: api.log,
      logger: createLogger('pending-scores-test', 'silent'),
      clickhouse,
      now: () => Date.now() + WAIT_MS_MAX + 60_000,
      observe: () => undefined,
    });
    tomorrow.start();
    await eventually(async () => (await waiting()) === 0);
    await tomorrow.stop();
    await clickhouse.close();
    const { state } = await api.log.jsm.streams.info(DEAD_LETTERS_STREAM);
    const message = await api.log.jsm.streams.getMessage(DEAD_LETTERS_STREAM, { seq: state.last_seq });
    const letter = deadLetterCodec.decode(message?.data ?? Buffer.alloc(0), message?.header.get(FINGERPRINT_HEADER));
    expect(letter).toMatchObject({ stage: 'pending_scores', reason: 'expired' });
    expect(userScoreCodec.decode(letter.body, userScoreCodec.fingerprint)).toMatchObject({
      trace_id: 'never',
      number: 5,
    });
    await start();
  });

  it(`is refused with 429 when ${PENDING_SCORES_ORG_MAX} of the organization wait, and other organizations are not`, async () => {
    const { config } = await api.log.jsm.streams.info(PENDING_SCORES_STREAM);
    expect([config.max_msgs_per_subject, config.discard_new_per_subject]).toEqual([PENDING_SCORES_ORG_MAX, true]);
    await api.log.jsm.streams.update(PENDING_SCORES_STREAM, { max_msgs_per_subject: 1 });
    await give('crowd-1', 1);
    const refused = await give('crowd-2', 1);
    expect([refused.status, refused.json?.['code'], refused.headers.get('retry-after')]).toEqual([
      429,
      'rate_limited',
      '30',
    ]);
  });
});

it('a waiting score is asked for at intervals that grow with its age, up to a minute', () => {
  expect([0, 1000, 10_000, 100_000, 86_400_000].map(againMs)).toEqual([400, 400, 2000, 20_000, 60_000]);
});
