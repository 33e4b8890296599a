// The end of the ingest log by partition, to which reservations of a killed process are settled.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLogEnd } from '../../../api/admission/budget/log_end.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { INGEST_STREAM, ingestSubject, MIXED_SUBJECT } from '../../../schemas/streams.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';

let nats: TestNats;
let log: Log;

beforeAll(async () => {
  nats = await startTestNats();
  const nc = await connectNats({ url: nats.url, name: 'test', waitMs: 3000 });
  log = await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 ** 2 });
}, 60_000);

afterAll(async () => {
  await log.nc.close();
  await nats.remove();
});

test('is the newest message that may hold events of the partition; 0 where there is none', async () => {
  expect(await readLogEnd(log, 3)).toEqual(new Map([0, 1, 2].map((partition) => [partition, 0])));
  const store = async (subject: string) => (await log.js.publish(subject, 'events')).seq;
  await store(ingestSubject(0));
  const mixed = await store(MIXED_SUBJECT);
  await store(ingestSubject(1));
  const ends = [await store(ingestSubject(0)), await store(ingestSubject(1)), mixed];
  expect(await readLogEnd(log, 3)).toEqual(new Map(ends.entries()));
});

test('leaves no consumer behind', async () => {
  await readLogEnd(log, 3);
  expect((await log.jsm.streams.info(INGEST_STREAM)).state.consumer_count).toBe(0);
});
