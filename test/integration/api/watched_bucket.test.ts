// A bucket in memory against a real nats-server: existing keys, changes, and changes made while the
// process was disconnected.
import type { KV } from '@nats-io/kv';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { RevisionConflict, WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

interface Thing {
  n: number;
}

let nats: TestNats;
const logs: Log[] = [];
let problems: string[];

beforeEach(async () => {
  nats = await startTestNats();
  problems = [];
});

afterEach(async () => {
  for (const log of logs.splice(0)) await log.nc.close();
  await nats.remove();
});

async function openKv(): Promise<{ log: Log; kv: KV }> {
  const log = await openLog(await connectNats({ url: nats.url, name: 'test', waitMs: 5000 }), {
    replicas: 1,
    logBytesMax: 1024 * 1024,
  });
  logs.push(log);
  return { log, kv: await log.bucket('orgs') };
}

const watch = ({ log, kv }: { log: Log; kv: KV }) =>
  WatchedBucket.open<Thing>(log.nc, kv, {
    name: 'orgs',
    parse: (text) => {
      const { n } = JSON.parse(text) as Thing;
      if (typeof n !== 'number') throw new Error('n is no number');
      return { n };
    },
    onProblem: (problem) => problems.push(problem),
  });

test('a watched bucket opens with everything in it except deletions, and an empty one opens at once', async () => {
  const one = await openKv();
  const empty = await watch(one);
  expect(empty.size).toBe(0);
  for (let n = 0; n < 300; n++) await one.kv.put(`k${n}`, JSON.stringify({ n }));
  await one.kv.delete('k7');
  const full = await watch(await openKv());
  expect(full.size).toBe(299);
  expect([full.get('k7'), full.get('k299')]).toEqual([undefined, { n: 299 }]);
  await eventually(() => empty.size === 299);
});

test('a write is visible at once where it was made and later elsewhere; the loser of two writes is notified', async () => {
  const [one, two] = [await watch(await openKv()), await watch(await openKv())];
  const changes: string[] = [];
  two.onChange((key, held) => changes.push(`${key}=${held === null ? 'gone' : String(held.value.n)}`));
  await one.create('a', { n: 1 });
  expect(one.get('a')).toEqual({ n: 1 });
  await expect(one.create('a', { n: 2 })).rejects.toBeInstanceOf(RevisionConflict);
  await eventually(() => two.get('a')?.n === 1);
  const seen = two.held('a');
  if (seen === undefined) throw new Error('not there');
  await two.update('a', { n: 3 }, seen.revision);
  await expect(one.update('a', { n: 4 }, seen.revision)).rejects.toBeInstanceOf(RevisionConflict);
  await eventually(() => one.get('a')?.n === 3);
  const held = one.held('a');
  if (held === undefined) throw new Error('not there');
  await expect(one.delete('a', seen.revision)).rejects.toBeInstanceOf(RevisionConflict);
  await one.delete('a', held.revision);
  expect(one.get('a')).toBeUndefined();
  await eventually(() => two.get('a') === undefined);
  await one.create('a', { n: 5 });
  await eventually(() => two.get('a')?.n === 5);
  expect(changes).toEqual(['a=1', 'a=3', 'a=gone', 'a=5']);
});

test('a write-once key is written once, also after it was deleted, whoever writes', async () => {
  const [one, two] = [await watch(await openKv()), await watch(await openKv())];
  const outcomes = await Promise.allSettled([one, two, one, two].map((bucket, n) => bucket.createOnce('a', { n })));
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected']);
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(RevisionConflict);
  await eventually(() => one.held('a') !== undefined);
  await one.delete('a', one.held('a')?.revision ?? 0);
  await nats.kill();
  await nats.start();
  const later = await watch(await openKv());
  await expect(later.createOnce('a', { n: 9 })).rejects.toBeInstanceOf(RevisionConflict);
  expect(later.get('a')).toBeUndefined();
  await later.createOnce('b', { n: 1 });
  expect(later.get('b')).toEqual({ n: 1 });
  // A key that is not write-once can be created again after it was deleted.
  await later.create('a', { n: 2 });
  expect(later.get('a')).toEqual({ n: 2 });
});

test('keys deleted, changed and created while the connection was down are right after it', async () => {
  const { log, kv } = await openKv();
  for (const key of ['gone', 'changed', 'kept']) await kv.put(key, '{"n":1}');
  const bucket = await watch({ log, kv });
  const told: string[] = [];
  bucket.onChange((key) => told.push(key));
  await nats.kill();
  await nats.start();
  // This connection is open before the first one has reconnected.
  const other = await openKv();
  await other.kv.delete('gone');
  await other.kv.put('changed', '{"n":2}');
  await other.kv.put('made', '{"n":3}');
  await eventually(
    () => bucket.get('gone') === undefined && bucket.get('changed')?.n === 2 && bucket.get('made')?.n === 3,
  );
  expect(bucket.get('kept')).toEqual({ n: 1 });
  expect([...new Set(told)].sort()).toEqual(['changed', 'gone', 'made']);
  await other.kv.put('later', '{"n":4}');
  await eventually(() => bucket.get('later')?.n === 4);
});

test('a write without a connection fails at once instead of being dropped', async () => {
  const bucket = await watch(await openKv());
  await bucket.create('a', { n: 1 });
  await nats.kill();
  // A write that waits for the connection fails with a timeout, which has a different message.
  await eventually(async () => {
    const error = await bucket.create('b', { n: 1 }).catch((cause: unknown) => cause);
    return error instanceof Error && error.message.includes('not connected');
  });
  expect(bucket.get('a')).toEqual({ n: 1 });
});

test('an invalid value is reported and does not affect its neighbours', async () => {
  const { log, kv } = await openKv();
  await kv.put('bad', 'nonsense');
  await kv.put('good', '{"n":1}');
  const bucket = await watch({ log, kv });
  expect([bucket.get('bad'), bucket.get('good')]).toEqual([undefined, { n: 1 }]);
  expect(problems).toHaveLength(1);
});
