// Opening and reading buckets by name, with the record type that the table of buckets gives them.
import type { KV } from '@nats-io/kv';
import { expect, expectTypeOf, test } from 'vitest';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { readEntry, readRecord, watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { BucketName } from '../../../schemas/buckets.ts';
import { NO_PRICES, type Prices } from '../../../schemas/records/prices.ts';
import { anEmptyBucket } from '../../support/kv.ts';

const aLog = (kv: Partial<KV>) => {
  const opened: BucketName[] = [];
  const { nc, kv: empty } = anEmptyBucket();
  const log: Pick<Log, 'nc' | 'bucket'> = {
    nc,
    bucket: (name) => {
      opened.push(name);
      return Promise.resolve({ ...empty, ...kv } as unknown as KV);
    },
  };
  return { log, opened };
};

const entry = (operation: 'PUT' | 'DEL', text: string) =>
  ({ get: () => Promise.resolve({ operation, revision: 7, string: () => text }) }) as unknown as Partial<KV>;

test('watch opens the bucket of its name with the record type of the table', async () => {
  const { log, opened } = aLog({});
  const bucket = await watch(log, 'prices', () => undefined);
  expectTypeOf(bucket).toEqualTypeOf<WatchedBucket<Prices>>();
  expect([bucket.size, opened]).toEqual([0, ['prices']]);
});

test('a read returns the parsed record with its revision, and null for a deleted or missing key', async () => {
  const { log } = aLog(entry('PUT', JSON.stringify(NO_PRICES)));
  expect(await readEntry(log, 'prices', 'org_a')).toEqual({ record: NO_PRICES, revision: 7 });
  expect(await readRecord(log, 'prices', 'org_a')).toEqual(NO_PRICES);
  expect(await readRecord(aLog(entry('DEL', '')).log, 'prices', 'org_a')).toBeNull();
  expect(await readRecord(aLog({}).log, 'prices', 'org_a')).toBeNull();
});

test('a read rejects when the value is no record of the bucket', async () => {
  await expect(readRecord(aLog(entry('PUT', '{"prices":1}')).log, 'prices', 'org_a')).rejects.toThrow();
});
