// Datasets: their versions and items, and the requests that the API rejects.
import { expect, test } from 'vitest';
import { call } from '../api/an_api.ts';
import { makeJudge, makeOrg } from './an_eval.ts';
import { api, org, type DatasetShown, item, make, refused } from './a_dataset.ts';

test('a version of a dataset never changes', async () => {
  const items = [item('a'), { input: { b: 1, a: [1, { y: 1, x: 2 }] } }];
  const made = await make(items);
  expect(made).toMatchObject({ name: 'd', version: '1', item_count: 2 });
  expect(made.dataset_id).toMatch(/^ds_[0-9a-f]{16}$/);
  // The same items written differently: keys in another order, and explicit empty values for
  // missing fields.
  expect(await make([item('a'), { input: { a: [1, { x: 2, y: 1 }], b: 1 }, expected: null, metadata: {} }])).toEqual(
    made,
  );
  expect(await refused('/v1/datasets', { name: 'd', version: '1', items: [item('b')] })).toMatchObject({
    status: 409,
    code: 'conflict',
  });
  expect(await refused('/v1/datasets', { name: 'd', version: '1', items: [...items, item('c')] })).toMatchObject({
    status: 409,
    code: 'conflict',
  });
  const second = await make([item('b')], { version: '2' });
  const other = await make([item('b')], { name: 'e' });
  expect((await org.get<DatasetShown[]>('/v1/datasets')).map(({ dataset_id }) => dataset_id).sort()).toEqual(
    [made, second, other].map(({ dataset_id }) => dataset_id).sort(),
  );
  expect((await org.get<DatasetShown[]>('/v1/datasets?name=d')).map(({ version }) => version).sort()).toEqual([
    '1',
    '2',
  ]);
  expect(await org.get<DatasetShown>(`/v1/datasets/${made.dataset_id}`)).toEqual(made);
  const stranger = await makeOrg(api);
  for (const path of ['', '/items'])
    expect(
      (await call(api, 'GET', `/v1/datasets/${made.dataset_id}${path}`, { headers: stranger.headers })).json,
    ).toMatchObject({
      code: 'dataset_not_found',
    });
});

test('of two concurrent versions of a dataset with different items one is refused', async () => {
  const both = await Promise.all(
    ['a', 'b'].map((question) => refused('/v1/datasets', { name: 'd', version: '1', items: [item(question)] })),
  );
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  const [made] = await org.get<DatasetShown[]>('/v1/datasets');
  const winner = both[0]?.status === 201 ? 'a' : 'b';
  expect(await org.get(`/v1/datasets/${made?.dataset_id ?? ''}/items`)).toEqual([{ item_index: 0, ...item(winner) }]);
});

test('the items of a dataset are read in pages, whatever their size', async () => {
  const items = Array.from({ length: 30 }, (_, i) => ({ ...item(`${i} ${'ü'.repeat(40_000)}`) }));
  const { dataset_id } = await make(items);
  const page = await org.get<{ item_index: number }[]>(`/v1/datasets/${dataset_id}/items?limit=12&offset=7`);
  expect(page).toEqual(items.slice(7, 19).map((one, i) => ({ item_index: 7 + i, ...one })));
  expect(await org.get(`/v1/datasets/${dataset_id}/items?offset=30`)).toEqual([]);
  expect(
    await refused('/v1/datasets', { name: 'x', version: '1', items: [item('a'), item('x'.repeat(600_000))] }),
  ).toMatchObject({
    status: 422,
    code: 'invalid_request',
    detail: expect.stringMatching(/^items\[1\]/) as string,
  });
  for (const body of [
    { name: 'x', version: '1', items: [] },
    { name: 'x', items: [item('a')] },
    { name: 'x', version: '1', items: [{ input: 'text' }] },
  ])
    expect(await refused('/v1/datasets', body)).toMatchObject({ status: 422, code: 'invalid_request' });
});

test('a dataset run with something that cannot be run is refused and names it', async () => {
  const { dataset_id } = await make([item('a')]);
  const judge_id = await makeJudge(org);
  const path = `/v1/datasets/${dataset_id}/run`;
  expect(await refused('/v1/datasets/ds_none/run', { judge_id, model: 'm' })).toMatchObject({
    status: 404,
    code: 'dataset_not_found',
  });
  expect(await refused(path, { judge_id: 'judge_none', model: 'm' })).toMatchObject({
    status: 404,
    code: 'judge_not_found',
  });
  expect(await refused(path, { judge_id, model: 'm', prompt_version: 'none@1' })).toMatchObject({
    status: 404,
    code: 'prompt_not_found',
  });
  expect(await refused(path, { judge_id })).toMatchObject({
    status: 422,
    code: 'invalid_request',
    detail: expect.stringMatching(/^model/) as string,
  });
  expect(await refused(path, { model: 'm' })).toMatchObject({
    status: 422,
    code: 'invalid_request',
    detail: expect.stringMatching(/^judge_id/) as string,
  });
});
