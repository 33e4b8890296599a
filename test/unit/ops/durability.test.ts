import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { createSyncer } from '../../../ops/platform/clickhouse/durability.ts';

it('a folder that cannot be synced has no durability', async () => {
  expect(await createSyncer('/no/such/folder')).toBeNull();
});

it('callers that arrive during a sync share one that begins after they arrived', async () => {
  const syncer = await createSyncer(tmpdir());
  if (syncer === null) throw new Error('no sync command on this system');
  const order: string[] = [];
  const first = syncer.sync().then(() => order.push('first'));
  const later = [syncer.sync(), syncer.sync()].map((done) => done.then(() => order.push('later')));
  await Promise.all([first, ...later]);
  expect(order).toEqual(['first', 'later', 'later']);
  await syncer.sync();
});
