// The same tests for both object stores: a real folder and a real S3-compatible server.
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ObjectStore, ObjectStoreError } from '../../../ops/platform/object_store/object_store.ts';
import { openObjectStore } from '../../../ops/platform/object_store/open.ts';
import { S3_CREDENTIALS, startTestS3, type TestS3 } from '../../support/s3.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { keysOf } from './a_cold.ts';

const { signal } = new AbortController();
const folder = tempDir('objects');
let s3: TestS3;
beforeAll(async () => {
  s3 = await startTestS3();
});
afterAll(async () => {
  await s3.close();
  removeDir(folder);
});

async function* chunks(...texts: (string | Buffer)[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield await Promise.resolve(Buffer.from(text));
}
const failure = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'none',
    (error: unknown) => (error instanceof ObjectStoreError ? error.failure : String(error)),
  );
const read = async (store: ObjectStore, key: string): Promise<string> =>
  (await buffer(store.get(key, signal))).toString();

describe.each([
  ['a folder', () => openObjectStore({ url: `file://${folder}/with%20space` })],
  ['a bucket', () => openObjectStore({ url: s3.url, credentials: S3_CREDENTIALS })],
])('%s', (_name, open) => {
  it('an object store keeps objects and returns them whole or in part', async () => {
    const store = await open();
    await store.put('org=a/one.parquet', chunks('hello ', 'world'), signal);
    expect(await read(store, 'org=a/one.parquet')).toBe('hello world');
    expect((await buffer(store.get('org=a/one.parquet', signal, { from: 6, until: 9 }))).toString()).toBe('wor');
    expect(await store.stat('org=a/one.parquet', signal)).toEqual({ key: 'org=a/one.parquet', bytes: 11 });
    await store.put('org=a/one.parquet', chunks('other'), signal);
    expect(await read(store, 'org=a/one.parquet')).toBe('other');
    await store.put('empty', chunks(), signal);
    expect(await read(store, 'empty')).toBe('');
    store.close();
  });

  it('an object store accepts objects of many parts, with a few in memory at a time', async () => {
    const store = await open();
    const part = Buffer.alloc(3 * 1024 * 1024, 'x');
    await store.put('large', chunks(part, part, part, part, part, part, part), signal);
    expect(await store.stat('large', signal)).toEqual({ key: 'large', bytes: 7 * part.length });
    expect((await buffer(store.get('large', signal))).equals(Buffer.alloc(7 * part.length, 'x'))).toBe(true);
    store.close();
  });

  it('an object store lists by prefix, without deleted objects', async () => {
    const store = await open();
    for (const key of ['list/a/1', 'list/a/2', 'list/ab', 'list/b']) await store.put(key, chunks(key), signal);
    const keys = (prefix: string): Promise<string[]> => keysOf(store, prefix);
    expect(await keys('list/a')).toEqual(['list/a/1', 'list/a/2', 'list/ab']);
    expect(await keys('list/none/')).toEqual([]);
    await store.delete('list/a/1', signal);
    await store.delete('list/a/1', signal);
    expect([await keys('list/a/'), await store.stat('list/a/1', signal)]).toEqual([['list/a/2'], null]);
    store.close();
  });

  it('an object store reports a missing object as missing', async () => {
    const store = await open();
    expect([await failure(read(store, 'none')), await store.stat('none', signal)]).toEqual(['missing', null]);
    store.close();
  });

  it('an object store writes nothing of a content that fails, and passes the failure on', async () => {
    const store = await open();
    await store.put('kept', chunks('before'), signal);
    const broken = async function* (): AsyncGenerator<Uint8Array> {
      yield await Promise.resolve(Buffer.alloc(20_000_000));
      throw new TypeError('the content is gone');
    };
    await expect(store.put('kept', broken(), signal)).rejects.toThrow('the content is gone');
    await expect(store.put('new', broken(), signal)).rejects.toThrow(TypeError);
    expect([await read(store, 'kept'), await store.stat('new', signal)]).toEqual(['before', null]);
    store.close();
  });

  it('an object store aborts a write whose caller is gone', async () => {
    const store = await open();
    const gone = new AbortController();
    const endless = async function* (): AsyncGenerator<Uint8Array> {
      for (let sent = 0; ; sent++) {
        if (sent === 3) gone.abort(new Error('the caller has gone'));
        yield await Promise.resolve(Buffer.alloc(1024 * 1024));
      }
    };
    await expect(store.put('never', endless(), gone.signal)).rejects.toThrow('the caller has gone');
    expect(await store.stat('never', signal)).toBeNull();
    store.close();
  });
});

describe('a store that cannot be used', () => {
  it('a missing or foreign bucket is an error of configuration; an unreachable server is unavailable', async () => {
    const noBucket = await openObjectStore({ url: s3.noBucketUrl, credentials: S3_CREDENTIALS });
    expect(await failure(noBucket.put('a', chunks('a'), signal))).toBe('refused');
    expect(await failure(read(noBucket, 'a'))).toBe('refused');
    const stranger = await openObjectStore({
      url: s3.url,
      credentials: { accessKeyId: 'nobody', secretAccessKey: 'wrong' },
    });
    expect(await failure(stranger.put('a', chunks('a'), signal))).toBe('refused');
    await expect(stranger.put('a', chunks('a'), signal)).rejects.toThrow(
      /a cannot be written to s3:\/\/cold\/some\/prefix: .*\(status 403\)/,
    );
    const nobody = await openObjectStore({ url: 's3://cold?endpoint=http://127.0.0.1:9', credentials: S3_CREDENTIALS });
    expect(await failure(nobody.put('a', chunks('a'), signal))).toBe('unavailable');
  });

  it('a folder that is a file is rejected, and so is a key that leads out of the folder', async () => {
    writeFileSync(path.join(folder, 'a_file'), '');
    const store = await openObjectStore({ url: `file://${folder}/a_file` });
    expect(await failure(store.put('a/b', chunks('a'), signal))).toBe('refused');
    expect(
      await failure((await openObjectStore({ url: `file://${folder}/in` })).put('../out', chunks('a'), signal)),
    ).toBe('refused');
    expect(existsSync(path.join(folder, 'out'))).toBe(false);
  });

  it.skipIf(process.getuid?.() === 0)('a folder without the right to write is rejected', async () => {
    mkdirSync(path.join(folder, 'locked'));
    chmodSync(path.join(folder, 'locked'), 0o500);
    const store = await openObjectStore({ url: `file://${folder}/locked` });
    expect(await failure(store.put('a', chunks('a'), signal))).toBe('refused');
    expect(readdirSync(path.join(folder, 'locked'))).toEqual([]);
  });
});
