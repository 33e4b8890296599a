// The streams of the ingest log in NATS, without a pipeline: how they are created and changed, and
// what reads or purges them as a whole.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { headers } from '@nats-io/transport-node';
import { countBacklog } from '../../../api/admission/budget/backlog.ts';
import { readLogEnd } from '../../../api/admission/budget/log_end.ts';
import { createLogger } from '../../../ops/platform/logger.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { attachLog, fixedPartitions, type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import { ingestEnd, purgeIngest } from '../../../pipeline/erasure/logs.ts';
import { startJanitor } from '../../../pipeline/worker/log_janitor.ts';
import { FINGERPRINT_HEADER, ingestBatchCodec } from '../../../schemas/codec.ts';
import type { LogStream } from '../../../schemas/log_layout.ts';
import { ingestSubject } from '../../../schemas/streams.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

const PARTITIONS = 4;
const MIB = 1024 * 1024;

let nats: TestNats;
let logs: Log[] = [];

beforeEach(async () => {
  nats = await startTestNats();
  logs = [];
});
afterEach(async () => {
  await Promise.all(logs.map(({ nc }) => nc.close()));
  await nats.remove();
});

async function open(count: number, logBytesMax = 64 * MIB): Promise<Log> {
  const nc = await connectNats({ url: nats.url, name: 'test', waitMs: 5000 });
  const log = await openLog(nc, { replicas: 1, logBytesMax, streams: { count, partitions: PARTITIONS } });
  logs.push(log);
  return log;
}
const configOf = async (log: Log, name: string) => (await log.jsm.streams.info(name)).config;
const stateOf = async (log: Log, name: string) => (await log.jsm.streams.info(name)).state;
const streamOf = (log: Log, partition: number): LogStream => {
  const stream = log.streams.layout.open.find((one) => one.has(partition));
  if (stream === undefined) throw new Error(`no stream has partition ${partition}`);
  return stream;
};
async function positionOf(log: Log, subject: string, data: Uint8Array | string = 'x'): Promise<number> {
  const head = headers();
  head.set(FINGERPRINT_HEADER, ingestBatchCodec.fingerprint);
  const { stream, seq } = await log.js.publish(subject, data, { headers: head });
  return log.streams.layout.named(stream)?.position(seq) ?? NaN;
}

describe('opening', () => {
  it('the first process fixes the number of streams, and divides the bytes of the log among them', async () => {
    const [first, second] = [await open(2), await open(4)];
    expect(second.streams.layout.record).toEqual(first.streams.layout.record);
    expect((await configOf(first, 'INGEST')).subjects).toEqual(['ingest.mixed', 'ingest.0', 'ingest.1']);
    expect((await configOf(first, 'INGEST_1')).subjects).toEqual(['ingest.mixed_1_1', 'ingest.2', 'ingest.3']);
    expect((await configOf(first, 'INGEST_1')).max_bytes).toBe(32 * MIB);
  });

  it('a log of a version without several streams keeps its stream, whatever the setting says', async () => {
    const before = await open(1);
    await before.js.publish(ingestSubject(3), 'old');
    await (await before.bucket('service')).purge('streams');
    const after = await open(4);
    expect(after.streams.layout.open.map(({ name }) => name)).toEqual(['INGEST']);
    expect((await stateOf(after, 'INGEST')).messages).toBe(1);
  });

  it('rejects more streams than the log has partitions', async () => {
    await expect(open(5)).rejects.toThrow('SERVICE_LOG_STREAMS is 5; the ingest log has 4 partitions');
  });

  it('a command of the operator knows the streams of the service', async () => {
    const log = await open(2);
    const attached = await attachLog(log.nc);
    expect(attached.streams.layout.record).toEqual(log.streams.layout.record);
  });

  it('processes that open the log at the same moment agree on its streams', async () => {
    const opened = await Promise.all([open(1), open(2), open(4)]);
    const [record, ...others] = opened.map(({ streams }) => streams.layout.record);
    for (const other of others) expect(other).toEqual(record);
  });
});

describe('changing', () => {
  it('no message enters an old stream, a partition keeps its subject, and all processes follow', async () => {
    const [log, other] = [await open(1), await open(1)];
    await fixedPartitions(log, PARTITIONS);
    await log.js.publish(ingestSubject(3), 'old');
    expect(await log.streams.change(2, PARTITIONS)).toBe(true);
    await eventually(() => other.streams.layout.record.generations[0]?.ends !== null, { what: 'the ends' });
    expect(other.streams.layout.record).toEqual(log.streams.layout.record);
    expect((await other.js.publish(ingestSubject(3), 'new')).stream).toBe('INGEST_2_1');
    expect(log.streams.layout.named('INGEST')?.end).toBe(2);
    expect((await stateOf(log, 'INGEST')).last_seq).toBe(2);
  });

  it('waits for the end of a change before it begins another, and does nothing if the number is right', async () => {
    const log = await open(1);
    await fixedPartitions(log, PARTITIONS);
    expect(await log.streams.change(1, PARTITIONS)).toBe(true);
    expect(log.streams.layout.isChanging).toBe(false);
    await log.streams.change(2, PARTITIONS);
    expect(await log.streams.change(4, PARTITIONS)).toBe(false);
    expect(await log.streams.retire([0, 0, 0, 0])).toBe(false);
    const end = log.streams.layout.named('INGEST')?.position(log.streams.layout.named('INGEST')?.end ?? 0) ?? NaN;
    expect(await log.streams.retire([end, end, end - 1, end])).toBe(false);
    expect(await log.streams.retire([end, end, end, end])).toBe(true);
    expect(await log.streams.change(4, PARTITIONS)).toBe(true);
    expect(log.streams.layout.open.map(({ name }) => name)).toEqual([0, 1, 2, 3].map((index) => `INGEST_3_${index}`));
  });

  it('two processes that begin a change at the same moment make one', async () => {
    const [log, other] = [await open(1), await open(1)];
    await fixedPartitions(log, PARTITIONS);
    await Promise.all([log.streams.change(2, PARTITIONS), other.streams.change(4, PARTITIONS)]);
    await eventually(() => log.streams.layout.record.generations[0]?.ends !== null, { what: 'the ends' });
    expect(log.streams.layout.record.generations.map(({ number }) => number)).toEqual([1, 2]);
    expect(log.streams.layout.record.next).toBeNull();
    for (const { name } of log.streams.layout.streams) expect((await stateOf(log, name)).last_seq).toBeLessThan(2);
  });

  it('a process that starts while an old stream has its subjects again closes it', async () => {
    const log = await open(1);
    await fixedPartitions(log, PARTITIONS);
    await log.streams.change(2, PARTITIONS);
    for (const { name } of log.streams.layout.open) await log.jsm.streams.delete(name);
    await log.jsm.streams.update('INGEST', { subjects: ['ingest.*'] });
    await open(2);
    expect((await log.js.publish(ingestSubject(0), 'new')).stream).toBe('INGEST_2_0');
  });
});

it('a leader that was killed after it had deleted the old stream leaves a change that the next leader ends', async () => {
  const log = await open(1);
  await fixedPartitions(log, PARTITIONS);
  await log.streams.change(2, PARTITIONS);
  const old = log.streams.layout.named('INGEST');
  const end = old?.position(old.end ?? NaN) ?? NaN;
  await log.jsm.streams.delete('INGEST');
  expect(await readLogEnd(log, PARTITIONS)).toEqual(new Map([0, 0, 0, 0].entries()));
  const janitor = startJanitor(log, createLogger('test', 'silent'), () => Array<number>(PARTITIONS).fill(end), 50);
  try {
    await eventually(() => !log.streams.layout.isChanging, { what: 'the end of the change' });
  } finally {
    janitor.stop();
  }
  expect((await open(2)).streams.layout.open.map(({ name }) => name)).toEqual(['INGEST_2_0', 'INGEST_2_1']);
});

it('a message that entered an old stream after its end is sent on to the new streams before the old one is deleted', async () => {
  const log = await open(1);
  await fixedPartitions(log, PARTITIONS);
  await log.streams.change(2, PARTITIONS);
  const old = log.streams.layout.named('INGEST');
  const end = old?.position(old.end ?? NaN) ?? NaN;
  const events = ['t_1', 't_2', 't_3'].map((trace_id) => ({
    org_id: 'org',
    format: 'custom' as const,
    event_hex: '0123456789abcdef',
    trace_id,
    received_at: 1,
    body: '{}',
  }));
  await log.jsm.streams.update('INGEST', { subjects: ['ingest_end.1.0', 'ingest.mixed'] });
  await positionOf(log, 'ingest.mixed', ingestBatchCodec.encode({ events }));
  await positionOf(log, 'ingest_end.1.0');
  expect(await log.streams.retire(Array<number>(PARTITIONS).fill(end))).toBe(true);
  const found = new Map<string, string>();
  for (const { name } of log.streams.layout.open)
    for (let seq = 1; seq <= (await stateOf(log, name)).last_seq; seq += 1) {
      const message = await log.jsm.streams.getMessage(name, { seq });
      if (message === null) continue;
      const batch = ingestBatchCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)).events;
      for (const { trace_id } of batch) found.set(trace_id, message.subject);
    }
  expect(found).toEqual(
    new Map(events.map(({ trace_id }) => [trace_id, ingestSubject(partitionOf('org', trace_id, PARTITIONS))])),
  );
});

describe('reading all streams', () => {
  it('the end of the log is the newest message that may hold events of a partition, in any generation', async () => {
    const log = await open(2);
    const mixed = await positionOf(log, streamOf(log, 0).mixed);
    const own = await positionOf(log, ingestSubject(3));
    const ends = [mixed, mixed, 0, own];
    expect(await readLogEnd(log, PARTITIONS)).toEqual(new Map(ends.entries()));
    await log.streams.change(4, PARTITIONS);
    expect(await readLogEnd(log, PARTITIONS)).toEqual(new Map(ends.entries()));
    const later = await positionOf(log, streamOf(log, 1).mixed);
    expect(await readLogEnd(log, PARTITIONS)).toEqual(new Map([mixed, later, 0, own].entries()));
  });

  it('counts the backlog of each stream above the checkpoints of its partitions', async () => {
    const log = await open(2);
    let traces = 0;
    const eventOf = (partition: number) => {
      for (;;) {
        const trace_id = `trace${traces++}`;
        if (partitionOf('org', trace_id, PARTITIONS) !== partition) continue;
        const event_hex = String(traces).padStart(16, '0');
        return { org_id: 'org', format: 'custom' as const, event_hex, trace_id, received_at: 1, body: '{}' };
      }
    };
    const store = (subject: string, ...partitions: number[]) =>
      positionOf(log, subject, ingestBatchCodec.encode({ events: partitions.map(eventOf) }));
    const landed = await store(ingestSubject(2), 2);
    for (const partition of [0, 1, 2, 3])
      await (
        await log.bucket('partitions')
      ).put(`partition.${partition}`, JSON.stringify({ partition, checkpoint: partition === 2 ? landed : 0 }));
    const [low, high] = [streamOf(log, 0), streamOf(log, 3)];
    const stored = [await store(low.mixed, 0, 1), await store(high.mixed, 2, 3), await store(ingestSubject(2), 2)];
    const newest = new Map([0, 1, 2, 3].map((partition) => [partition, stored[partition < 2 ? 0 : 2] ?? 0]));
    await store(ingestSubject(3), 3);
    const taken: [number, number][] = [];
    const whole = await countBacklog({
      log,
      partitions: PARTITIONS,
      newest,
      accountsOf: ({ org_id }) => [org_id],
      take: (_account, events, position) => {
        for (const { partition } of events) taken.push([partition, position]);
      },
      signal: AbortSignal.timeout(20_000),
      onProblem: () => undefined,
    });
    expect(whole).toBe(true);
    const [first, second, third] = stored;
    expect(taken).toEqual([
      [0, first],
      [1, first],
      [2, second],
      [3, second],
      [2, third],
    ]);
  });

  it('an erasure purges every stream up to its own end, and leaves what entered later', async () => {
    const log = await open(2);
    for (let message = 0; message < 3; message += 1) await positionOf(log, ingestSubject(0));
    const other = await positionOf(log, ingestSubject(3));
    const end = await ingestEnd(log, PARTITIONS);
    const last = streamOf(log, 0).position(3);
    expect(end.positions).toEqual([last, last, other, other]);
    expect(end.newest).toBe(last);
    await positionOf(log, ingestSubject(3));
    expect(await purgeIngest(log, end)).toBe(0);
    expect([await stateOf(log, 'INGEST'), await stateOf(log, 'INGEST_1')].map(({ messages }) => messages)).toEqual([
      0, 1,
    ]);
  });

  it('the janitor purges what has landed of each stream by itself, and moves the checkpoints of a full one', async () => {
    const log = await open(2);
    for (const { name } of log.streams.layout.open) await log.jsm.streams.update(name, { max_bytes: 4 * MIB });
    const data = Buffer.alloc(MIB / 2);
    for (let message = 0; message < 6; message += 1)
      for (const partition of [0, 3]) await positionOf(log, ingestSubject(partition), data);
    // The first stream has landed; partition 2 of the second has taken nothing.
    const landed = streamOf(log, 0).position(6);
    const checkpoints = [landed, landed, 0, streamOf(log, 3).position(6)];
    const janitor = startJanitor(log, createLogger('test', 'silent'), () => checkpoints, 50);
    try {
      await eventually(async () => (await stateOf(log, 'INGEST_1')).last_seq === 7, { what: 'an empty message' });
    } finally {
      janitor.stop();
    }
    const [first, second] = [await stateOf(log, 'INGEST'), await stateOf(log, 'INGEST_1')];
    expect([first.last_seq, first.first_seq > 1, second.first_seq]).toEqual([6, true, 1]);
  });
});
