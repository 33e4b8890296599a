// Versions of datasets that are made from others: what they hold, what is refused, and what stays
// when the process is killed meanwhile.
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, call, JWT_SECRET, KEY, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

interface Shown {
  dataset_id: string;
  name: string;
  version: string;
  item_count: number;
}
interface Answered {
  status: number;
  code: unknown;
  detail: unknown;
  data: Shown;
}

let nats: TestNats;
let api: TestApi;
const victims: ChildProcess[] = [];

beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url });
});

afterAll(async () => {
  for (const victim of victims) victim.kill('SIGKILL');
  await api.close();
  await nats.remove();
});

const item = (question: string) => ({ input: { question }, expected: null, metadata: {} });

async function post(path: string, body: unknown, at: { url: string } = api, key = randomUUID()): Promise<Answered> {
  const { status, json } = await call(at, 'POST', path, { body, headers: { 'Idempotency-Key': key } });
  return { status, code: json?.['code'], detail: json?.['detail'], data: json?.['data'] as Shown };
}
async function get<T>(path: string): Promise<T> {
  const { json } = await call(api, 'GET', path, {});
  return json?.['data'] as T;
}
const make = async (questions: string[], version = '1', name: string = randomUUID()): Promise<Shown> =>
  (await post('/v1/datasets', { name, version, items: questions.map(item) })).data;
const versions = (from: Shown): string => `/v1/datasets/${from.dataset_id}/versions`;
const questionsOf = async ({ dataset_id }: Shown): Promise<string[]> =>
  (await get<{ input: { question: string } }[]>(`/v1/datasets/${dataset_id}/items?limit=200`)).map(
    ({ input }) => input.question,
  );

test('a version holds the items of its base with some added, removed and replaced', async () => {
  const base = await make(['a', 'b', 'c', 'd']);
  const { status, data } = await post(versions(base), {
    add: [{ input: { question: 'e' } }],
    remove: [0, 2],
    replace: [{ item_index: 3, ...item('D') }],
  });
  expect([status, data]).toEqual([201, { ...data, name: base.name, version: '2', item_count: 3 }]);
  expect(await questionsOf(data)).toEqual(['b', 'D', 'e']);
  expect(await questionsOf(base)).toEqual(['a', 'b', 'c', 'd']);
  expect(await get(`/v1/datasets?name=${base.name}`)).toHaveLength(2);
});

test('the version is the whole number after the highest one, or the one that is asked for', async () => {
  const base = await make(['a'], 'golden');
  const first = await post(versions(base), { add: [item('b')] });
  expect(first.data.version).toBe('1');
  await make(['z'], '9', base.name);
  expect((await post(versions(first.data), { add: [item('c')] })).data.version).toBe('10');
  const named = await post(versions(base), { version: 'silver', add: [item('c')] });
  expect([named.data.version, await questionsOf(named.data)]).toEqual(['silver', ['a', 'c']]);
});

test('a version that exists is returned with the same items, and refused with others', async () => {
  const base = await make(['a']);
  const made = await post(versions(base), { version: '2', add: [item('b')] });
  expect((await post(versions(base), { version: '2', add: [item('b')] })).data).toEqual(made.data);
  expect(await post(versions(base), { version: '2', add: [item('c')] })).toMatchObject({
    status: 409,
    code: 'conflict',
    detail: `version: ${base.name} has a version 2 with other items.`,
  });
});

test('a request that is sent again with its key makes one version', async () => {
  const base = await make(['a']);
  const key = randomUUID();
  const [first, again] = [
    await post(versions(base), { add: [item('b')] }, api, key),
    await post(versions(base), { add: [item('b')] }, api, key),
  ];
  expect(again.data).toEqual(first.data);
  expect(await get(`/v1/datasets?name=${base.name}`)).toHaveLength(2);
});

test('of two concurrent versions with the same number and different items one is refused', async () => {
  const base = await make(['a']);
  const both = await Promise.all(
    ['b', 'c'].map((question) => post(versions(base), { version: '2', add: [item(question)] })),
  );
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ['changes nothing', {}, /^add: must have an item/],
  ['removes an item that the base does not have', { remove: [2] }, /^remove\[0\]: must be an item_index below 2/],
  [
    'replaces an item that it removes too',
    { remove: [1], replace: [{ item_index: 1, input: {} }] },
    /^replace\[0\]\.item_index: the item 1 is named twice/,
  ],
  ['leaves no item', { remove: [0, 1] }, /^remove: at least one item must remain/],
  ['adds an item that is too large', { add: [item('a'), item('x'.repeat(600_000))] }, /^add\[1\]: must have at most/],
  ['adds what is no item', { add: [{ input: 'text' }] }, /^add\.0\.input|^add\[0\]\.input/],
  ['has an unknown field', { items: [] }, /items/],
])('a request that %s is refused and names it', async (_, body, detail) => {
  const base = await make(['a', 'b']);
  expect(await post(versions(base), body)).toMatchObject({
    status: 422,
    code: 'invalid_request',
    detail: expect.stringMatching(detail) as string,
  });
  expect(await get(`/v1/datasets?name=${base.name}`)).toHaveLength(1);
});

test('a version has at most 10,000 items', async () => {
  const base = await make(Array.from({ length: 10_000 }, (_, i) => String(i)));
  expect(await post(versions(base), { add: [item('one more')] })).toMatchObject({
    status: 422,
    detail: 'add: a version has at most 10000 items, this one has 10001',
  });
  expect((await post(versions(base), { add: [item('instead')], remove: [0] })).data.item_count).toBe(10_000);
});

test('a version of an unknown dataset is refused', async () => {
  expect(await post('/v1/datasets/ds_none/versions', { add: [item('a')] })).toMatchObject({
    status: 404,
    code: 'dataset_not_found',
  });
});

async function startVictim(): Promise<{ process: ChildProcess; url: string }> {
  const victim = fork(new URL('../../../api/main.ts', import.meta.url), {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [],
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      SERVICE_NATS_URL: nats.url,
      SERVICE_CLICKHOUSE_URL: 'http://app:secret@127.0.0.1:9/millrace',
      SERVICE_PORT: '0',
      SERVICE_PARTITIONS: '4',
      SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
      SERVICE_BOOTSTRAP_ORG_ID: ORG,
      SERVICE_BOOTSTRAP_API_KEY: KEY,
      SERVICE_JWT_SECRET: JWT_SECRET,
    },
  });
  victims.push(victim);
  const [said] = (await once(victim, 'message')) as [{ port: number }];
  return { process: victim, url: `http://127.0.0.1:${said.port}` };
}

test('a process that is killed while it writes the items leaves no version, and another makes it', async () => {
  const base = await make(
    Array.from({ length: 20 }, (_, i) => `${i} ${'x'.repeat(200_000)}`),
    '1',
  );
  const bucket = await api.log.bucket('dataset_items');
  const partsOf = async (): Promise<number> => {
    let parts = 0;
    for await (const key of await bucket.keys(`${ORG}.>`)) parts += key === '' ? 0 : 1;
    return parts;
  };
  const before = await partsOf();
  const victim = await startVictim();
  const body = { version: '2', add: [item('last')] };
  const cut = post(versions(base), body, victim).catch(() => null);
  await eventually(async () => (await partsOf()) > before, { what: 'the first written part' });
  victim.process.kill('SIGKILL');
  await cut;
  const known = await get<Shown[]>(`/v1/datasets?name=${base.name}`);
  // The kill may come after the record too; then the version is whole.
  for (const one of known) expect(await questionsOf(one)).toHaveLength(one.item_count);
  const { status, data } = await post(versions(base), body);
  expect([status, data.item_count]).toEqual([201, 21]);
  expect((await questionsOf(data)).at(-1)).toBe('last');
});
