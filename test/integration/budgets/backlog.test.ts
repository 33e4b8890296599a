// Counting the backlog of the ingest log: every event above its partition's checkpoint counts once,
// whichever message carries it, even if NATS stops during the count.
import { headers } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countBacklog } from '../../../api/admission/budget/backlog.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { ingestSubject, MIXED_SUBJECT } from '../../../schemas/streams.ts';
import { partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import { FINGERPRINT_HEADER, ingestBatchCodec } from '../../../schemas/codec.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';

const PARTITIONS = 2;
const ORG = 'org_counted';

let nats: TestNats;
let log: Log;

beforeAll(async () => {
  nats = await startTestNats();
  log = await openLog(await connectNats({ url: nats.url, name: 'api', waitMs: 3000 }), {
    replicas: 1,
    logBytesMax: 1024 ** 3,
  });
}, 60_000);

afterAll(async () => {
  await log.nc.close();
  await nats.remove();
});

let events = 0;
/** Returns an event that belongs to a partition. */
function eventOf(partition: number, org_id = ORG) {
  for (;;) {
    const trace_id = `trace${events++}`;
    if (partitionOf(org_id, trace_id, PARTITIONS) !== partition) continue;
    const event_hex = String(events).padStart(16, '0');
    return { org_id, format: 'custom' as const, event_hex, trace_id, received_at: Date.now(), body: '{}' };
  }
}
async function publish(subject: string, batch: ReturnType<typeof eventOf>[], bytes?: Uint8Array): Promise<number> {
  const given = headers();
  given.set(FINGERPRINT_HEADER, ingestBatchCodec.fingerprint);
  return (await log.js.publish(subject, bytes ?? ingestBatchCodec.encode({ events: batch }), { headers: given })).seq;
}
async function checkpoint(partition: number, at: number): Promise<void> {
  await (await log.bucket('partitions')).put(`partition.${partition}`, JSON.stringify({ partition, checkpoint: at }));
}
/** Counts the backlog, and returns each counted event as its sequence, partition and event hash. */
async function counted(newest: number, onTake: () => void = () => undefined, signal = AbortSignal.timeout(60_000)) {
  const taken: string[] = [];
  const whole = await countBacklog({
    log,
    partitions: PARTITIONS,
    newest: new Map([0, 1].map((partition) => [partition, newest])),
    accountsOf: ({ org_id }) => (org_id === ORG ? [ORG] : []),
    take: (org_id, entering, seq) => {
      expect(org_id).toBe(ORG);
      for (const { event, partition } of entering) taken.push(`${seq} ${partition} ${event.event_hex}`);
      onTake();
    },
    signal,
    onProblem: () => undefined,
  });
  return { whole, taken };
}

test('counts each event above the checkpoint of its partition, up to the newest message at the time of the request', async () => {
  const [own, both, other, late] = [eventOf(0), [eventOf(0), eventOf(1)], eventOf(1, 'org_else'), eventOf(1)];
  const first = await publish(ingestSubject(0), [own]);
  const second = await publish(MIXED_SUBJECT, [...both, other]);
  const third = await publish(ingestSubject(1), [], Buffer.from('no batch'));
  const fourth = await publish(ingestSubject(1), [late]);
  await publish(ingestSubject(1), [eventOf(1)]);
  const line = (seq: number, partition: number, event: { event_hex: string } | undefined) =>
    `${seq} ${partition} ${event?.event_hex ?? ''}`;
  const all = [line(first, 0, own), line(second, 0, both[0]), line(second, 1, both[1]), line(fourth, 1, late)];
  expect(await counted(fourth)).toEqual({ whole: true, taken: all });
  await checkpoint(0, second);
  await checkpoint(1, first);
  expect(await counted(fourth)).toEqual({ whole: true, taken: all.slice(2) });
  await checkpoint(1, third);
  expect(await counted(fourth)).toEqual({ whole: true, taken: all.slice(3) });
  await checkpoint(1, fourth);
  expect(await counted(second)).toEqual({ whole: true, taken: [] });
});

test('continues where it was after NATS was away, and counts nothing twice', async () => {
  const seqs: number[] = [];
  for (let message = 0; message < 40; message++) seqs.push(await publish(ingestSubject(0), [eventOf(0)]));
  const [from = 0, newest = 0] = [seqs[0], seqs.at(-1)];
  for (const partition of [0, 1]) await checkpoint(partition, from - 1);
  const restarts: Promise<void>[] = [];
  const { whole, taken } = await counted(newest, () => {
    if (restarts.length === 0) restarts.push(nats.kill().then(() => nats.start()));
  });
  await Promise.all(restarts);
  expect(whole).toBe(true);
  expect(taken.map((line) => Number(line.split(' ')[0]))).toEqual(seqs);
});

test('ends when it is aborted', async () => {
  await log.nc.flush();
  const newest = await publish(ingestSubject(0), [eventOf(0)]);
  expect(await counted(newest, undefined, AbortSignal.abort())).toEqual({ whole: false, taken: [] });
});
