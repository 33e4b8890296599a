import { tmpdir } from 'node:os';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createSyncer, type Syncer } from '../../../ops/platform/clickhouse/durability.ts';
import { loadSyncfs } from '../../../ops/platform/clickhouse/syncfs.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

const without = (): Promise<null> => Promise.resolve(null);

it('a folder that cannot be synced has no durability', async () => {
  expect(await createSyncer('/no/such/folder')).toBeNull();
  expect(await createSyncer('/no/such/folder', without)).toBeNull();
});

it.skipIf(process.platform !== 'linux')('syncs without a process of its own on Linux', async () => {
  vi.stubEnv('PATH', '/no/such/folder');
  expect(await createSyncer(tmpdir(), without)).toBeNull();
  const syncer = await createSyncer(tmpdir());
  await syncer?.sync();
  expect(syncer).not.toBeNull();
});

it('runs the command sync where the C library cannot be called', async () => {
  expect(await createSyncer(tmpdir(), without)).not.toBeNull();
  const failing = (): Promise<never> => Promise.reject(new Error('no build of ffi-rs for this platform'));
  expect(await createSyncer(tmpdir(), failing)).not.toBeNull();
});

it.skipIf(process.platform !== 'linux')(
  'rejects syncs of a disk that hangs, and blocks one thread at most',
  async () => {
    const hanging = vi.fn(() => new Promise<void>(() => undefined));
    const sync = await loadSyncfs(tmpdir(), 5, () => Promise.resolve(hanging));
    for (let attempt = 0; attempt < 3; attempt += 1) await expect(sync?.()).rejects.toThrow('took longer than 5 ms');
    expect(hanging).toHaveBeenCalledOnce();
  },
);

describe.each([
  ['the system call', loadSyncfs],
  ['the command', without],
])('with %s', (_name, native) => {
  async function open(): Promise<Syncer> {
    const syncer = await createSyncer(tmpdir(), native);
    if (syncer === null) throw new Error('this system has no way to sync');
    return syncer;
  }

  it('callers that arrive during a sync share one that begins after they arrived', async () => {
    const syncer = await open();
    const order: string[] = [];
    const first = syncer.sync().then(() => order.push('first'));
    const later = [syncer.sync(), syncer.sync()].map((done) => done.then(() => order.push('later')));
    await Promise.all([first, ...later]);
    expect(order).toEqual(['first', 'later', 'later']);
    await syncer.sync();
  });
});
