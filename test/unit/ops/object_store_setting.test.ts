import { expect, it } from 'vitest';
import { EnvError, parseEnv } from '../../../ops/platform/env.ts';
import { openObjectStore } from '../../../ops/platform/object_store/open.ts';

it.each([
  ['file:///var/cold', 'file:///var/cold'],
  ['file:///var/with%20space/', 'file:///var/with space'],
  ['s3://bucket', 's3://bucket'],
  ['s3://bucket/a/b/?endpoint=http://127.0.0.1:9000&region=eu-central-1', 's3://bucket/a/b'],
])('%s is an object store', async (url, place) => {
  expect(parseEnv({ SERVICE_OBJECT_STORE: url }).SERVICE_OBJECT_STORE).toBe(url);
  const store = await openObjectStore({ url });
  expect(store.place).toBe(place);
  store.close();
});

it.each([
  '/var/cold',
  'file://',
  'file://host/dir',
  'http://host/bucket',
  's3://',
  's3://B',
  's3://bucket?endpoint=host',
  's3://bucket?acl=x',
  's3://key:secret@bucket',
])('%s is not an object store, and the start says so', (url) => {
  expect(() => parseEnv({ SERVICE_OBJECT_STORE: url })).toThrow(EnvError);
  expect(() => parseEnv({ SERVICE_OBJECT_STORE: url })).toThrow(
    /SERVICE_OBJECT_STORE: .*must be file:\/\/\/dir or s3:/,
  );
});

it("a bucket's credentials come from the AWS SDK's usual places", () => {
  expect(parseEnv({ AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret', OTHER: 'x' })).toMatchObject({
    AWS_ACCESS_KEY_ID: 'id',
    AWS_SECRET_ACCESS_KEY: 'secret',
  });
});
