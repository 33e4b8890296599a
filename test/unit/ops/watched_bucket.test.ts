// What a bucket rejects before it asks a server.
import { expect, test } from 'vitest';
import { KEY_CHARS_MAX, WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { anEmptyBucket } from '../../support/kv.ts';

const open = async () => {
  const { nc, kv, asked } = anEmptyBucket();
  const options = { name: 'things', parse: (text: string) => JSON.parse(text) as number, onProblem: () => undefined };
  return { bucket: await WatchedBucket.open(nc, kv, options), asked };
};

test('a key too long for a line of the protocol is never sent, whatever the operation', async () => {
  const { bucket, asked } = await open();
  const key = 'k'.repeat(KEY_CHARS_MAX + 1);
  for (const attempt of [
    () => bucket.create(key, 1),
    () => bucket.createOnce(key, 1),
    () => bucket.update(key, 1, 1),
    () => bucket.change(key, () => 1),
    () => bucket.delete(key, 1),
  ])
    await expect(attempt()).rejects.toThrow(
      `bucket things: a key of ${KEY_CHARS_MAX + 1} characters; it must have at most 1024`,
    );
  expect(asked).toEqual([]);
  expect(bucket.size).toBe(0);
});

test('the longest key is sent', async () => {
  const { bucket, asked } = await open();
  const key = 'k'.repeat(KEY_CHARS_MAX);
  await bucket.create(key, 1);
  await bucket.update(key, 2, 1);
  await bucket.delete(key, 2);
  expect(asked).toEqual(['create', 'update', 'delete'].map((method) => [method, key]));
});
