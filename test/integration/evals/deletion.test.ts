// Deletion of datasets and prompts: real APIs, a worker, the real engine, and an upstream of the
// test's own.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type TestEvalWorker, startEvalWorker } from '../../support/evals.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { hang, say, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, asUser, call, startTestApi, type TestApi, tokenOf } from '../api/an_api.ts';
import { type EvalShown, makeJudge, makeOrg, type TestOrg } from './an_eval.ts';

let nats: TestNats;
let store: TestStore;
let upstream: TestUpstream;
let api: TestApi;
let worker: TestEvalWorker;
let org: TestOrg;

beforeAll(async () => {
  [nats, store, upstream] = await Promise.all([startTestNats(), openTestStore(), startUpstream()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url, llmUrl: upstream.url });
  worker = await startEvalWorker({ natsUrl: nats.url, clickhouseUrl: store.database.url, llmUrl: upstream.url });
}, 60_000);

afterAll(async () => {
  await worker.stop();
  await api.close();
  await upstream.close();
  await nats.remove();
  await store.close();
});

beforeEach(async () => {
  org = await makeOrg(api);
  upstream.behave(say('ok'));
});

interface DatasetShown {
  dataset_id: string;
  item_count: number;
}
const items = (...questions: string[]) => questions.map((question) => ({ input: { question } }));
const makeDataset = (given: unknown[], version = '1') =>
  org.post<DatasetShown>('/v1/datasets', { name: 'd', version, items: given }, 201);
const run = async (dataset_id: string, more: Record<string, unknown> = {}): Promise<EvalShown> =>
  org.post<EvalShown>(`/v1/datasets/${dataset_id}/run`, {
    judge_id: await makeJudge(org),
    model: 'm',
    async: true,
    ...more,
  });
const remove = (path: string): Promise<Answer> => call(api, 'DELETE', path, { headers: org.headers });
const get = (path: string): Promise<Answer> => call(api, 'GET', path, { headers: org.headers });
const cancel = (eval_id: string): Promise<Answer> =>
  call(api, 'POST', `/v1/evals/${eval_id}/cancel`, { headers: org.headers, body: {} });
async function keysOf(bucket: 'datasets' | 'dataset_items' | 'grants' | 'prompts'): Promise<string[]> {
  const keys: string[] = [];
  for await (const key of await (await api.log.bucket(bucket)).keys(`${org.org}.>`)) keys.push(key);
  return keys;
}

test('deleting a dataset deletes its items and the grants on it, and past evals stay readable', async () => {
  const { dataset_id } = await makeDataset(items('a', 'b'));
  const { eval_id } = await run(dataset_id);
  const ended = await org.ended(eval_id);
  expect(ended).toMatchObject({ status: 'complete', stats: { total: 2 } });
  const owner = asUser(await tokenOf({ sub: `u_${org.org}` }), org.org);
  const grant = {
    user_id: `u_${org.org}`,
    resource: { type: 'dataset', id: dataset_id },
    permissions: ['datasets:read'],
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const granted = await call(api, 'POST', `/orgs/${org.org}/grants`, { headers: owner, body: grant });
  expect([granted.status, granted.text]).toEqual([201, expect.any(String)]);
  expect((await keysOf('grants')).length).toBe(1);

  const deleted = await remove(`/v1/datasets/${dataset_id}`);
  expect([deleted.status, deleted.json?.['data']]).toEqual([200, { dataset_id, deleted: true }]);
  for (const path of [`/v1/datasets/${dataset_id}`, `/v1/datasets/${dataset_id}/items`])
    expect((await get(path)).json).toMatchObject({ code: 'dataset_not_found' });
  expect(await org.get('/v1/datasets')).toEqual([]);
  expect([await keysOf('datasets'), await keysOf('dataset_items'), await keysOf('grants')]).toEqual([[], [], []]);
  const again = await remove(`/v1/datasets/${dataset_id}`);
  expect([again.status, again.json?.['code']]).toEqual([404, 'dataset_not_found']);

  expect(await org.get(`/v1/evals/${eval_id}`)).toEqual(ended);
  expect((await org.scores(eval_id)).length).toBe(2);
  expect(await org.get(`/v1/evals?dataset_id=${dataset_id}`)).toMatchObject([{ eval_id }]);
});

test('a dataset created again after its deletion has its own items, and its evals are not compared with those over other items', async () => {
  const first = await makeDataset(items('a'));
  const judge_id = await makeJudge(org);
  const before = await org.ended((await run(first.dataset_id, { judge_id })).eval_id);
  expect((await remove(`/v1/datasets/${first.dataset_id}`)).status).toBe(200);
  const second = await makeDataset(items('b', 'c'));
  expect(second).toMatchObject({ dataset_id: first.dataset_id, item_count: 2 });
  expect(await org.get(`/v1/datasets/${second.dataset_id}/items`)).toMatchObject(items('b', 'c'));
  const after = await org.ended((await run(second.dataset_id, { judge_id })).eval_id);
  expect(after).toMatchObject({ status: 'complete', stats: { total: 2 } });
  const compared = await get(`/v1/evals/compare?baseline=${before.eval_id}&candidate=${after.eval_id}`);
  expect([compared.status, compared.json?.['code']]).toEqual([422, 'invalid_request']);
  expect(compared.json?.['detail']).toContain('candidate');
});

test('a dataset and a prompt that a running eval uses cannot be deleted, and the answer names the eval', async () => {
  upstream.behave(hang);
  const { dataset_id } = await makeDataset(items('a'));
  await org.post('/v1/prompts', { name: 'greet/them', template: 'Hi {{question}}' }, 201);
  const { eval_id } = await run(dataset_id, { prompt_version: 'greet/them@1' });
  for (const path of [`/v1/datasets/${dataset_id}`, `/v1/prompts/${encodeURIComponent('greet/them')}`]) {
    const refused = await remove(path);
    expect([refused.status, refused.json?.['code']]).toEqual([409, 'conflict']);
    expect(refused.json?.['detail']).toContain(eval_id);
    expect((await get(path)).status).toBe(200);
  }
  expect((await cancel(eval_id)).status).toBe(200);
  for (const path of [`/v1/datasets/${dataset_id}`, `/v1/prompts/${encodeURIComponent('greet/them')}`])
    expect((await remove(path)).status).toBe(200);
});

test('when a deletion and runs begin at the same moment, no run is left without its items', async () => {
  for (let round = 0; round < 5; round++) {
    const { dataset_id } = await makeDataset(items('a'), String(round));
    const judge_id = await makeJudge(org);
    const body = { judge_id, model: 'm', async: true };
    const begin = () => call(api, 'POST', `/v1/datasets/${dataset_id}/run`, { headers: org.headers, body });
    const [one, deleted, two] = await Promise.all([begin(), remove(`/v1/datasets/${dataset_id}`), begin()]);
    expect([200, 409]).toContain(deleted.status);
    for (const begun of [one, two]) {
      expect([200, 404]).toContain(begun.status);
      if (begun.status !== 200) continue;
      const { eval_id } = begun.json?.['data'] as EvalShown;
      expect(await org.ended(eval_id)).toMatchObject({ status: 'complete', stats: { total: 1 } });
    }
    if (deleted.status === 200) expect((await get(`/v1/datasets/${dataset_id}`)).status).toBe(404);
  }
  const evals = await org.get<EvalShown[]>('/v1/evals');
  expect(evals.filter(({ status }) => status !== 'complete')).toEqual([]);
});

test.each(['checking', 'purging'] as const)(
  'a deletion interrupted while %s is completed by the next one',
  async (deleting) => {
    const { dataset_id } = await makeDataset(items('a'));
    const kv = await api.log.bucket('datasets');
    const key = `${org.org}.${dataset_id}`;
    const record = (await kv.get(key))?.json<Record<string, unknown>>();
    await kv.put(key, JSON.stringify({ ...record, deleting }));
    await eventually(async () => (await get(`/v1/datasets/${dataset_id}`)).status === 404, { what: 'the mark' });
    if (deleting === 'checking') expect((await remove(`/v1/datasets/${dataset_id}`)).status).toBe(200);
    else expect(await makeDataset(items('b', 'c'))).toMatchObject({ dataset_id, item_count: 2 });
    expect((await keysOf('dataset_items')).length).toBe(deleting === 'checking' ? 0 : 1);
  },
);

test('deleting a prompt deletes all of its versions, and the name can be used again', async () => {
  for (const template of ['one', 'two', 'three']) await org.post('/v1/prompts', { name: 'p', template }, 201);
  const deleted = await remove('/v1/prompts/p');
  expect([deleted.status, deleted.json?.['data']]).toEqual([200, { name: 'p', deleted: true }]);
  expect((await get('/v1/prompts/p')).json).toMatchObject({ code: 'prompt_not_found' });
  expect(await keysOf('prompts')).toEqual([]);
  expect((await remove('/v1/prompts/p')).status).toBe(404);
  expect(await org.post('/v1/prompts', { name: 'p', template: 'anew' }, 201)).toMatchObject({
    version: '1',
    template: 'anew',
  });
});
