import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { createSyncer } from '../../../ops/platform/clickhouse/durability.ts';

it('is not to be had for a folder that cannot be synced', async () => {
  expect(await createSyncer('/no/such/folder')).toBeNull();
});

it('serves callers that come during a sync by one that begins after they came', async () => {
  const syncer = await createSyncer(tmpdir());
  if (syncer === null) throw new Error('no sync command on this system');
  const order: string[] = [];
  const first = syncer.sync().then(() => order.push('first'));
  const later = [syncer.sync(), syncer.sync()].map((done) => done.then(() => order.push('later')));
  await Promise.all([first, ...later]);
  expect(order).toEqual(['first', 'later', 'later']);
  await syncer.sync();
});
