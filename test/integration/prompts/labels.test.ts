// Labels of prompts over HTTP: moving, reading by label, bounds, deletion, and the audit log.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LABELS_MAX } from '../../../schemas/records/prompt.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, startTestApi, type TestApi } from '../api/an_api.ts';

type Data = Record<string, unknown>;

let nats: TestNats;
let api: TestApi;
let second: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  [api, second] = await Promise.all([startTestApi({ natsUrl: nats.url }), startTestApi({ natsUrl: nats.url })]);
});
afterAll(async () => {
  await api.close();
  await second.close();
  await nats.remove();
});

const dataOf = ({ json }: Answer): Data => json?.['data'] as Data;
const create = (name: string, template: unknown, more: Data = {}) =>
  call(api, 'POST', '/v1/prompts', { body: { name, template, ...more } });
const get = (path: string, at = api) => call(at, 'GET', `/v1/prompts/${path}`);
const move = (name: string, label: string, version: unknown) =>
  call(api, 'PUT', `/v1/prompts/${name}/labels/${label}`, { body: { version } });
const remove = (name: string, label: string) => call(api, 'DELETE', `/v1/prompts/${name}/labels/${label}`);
const refusal = ({ status, json }: Answer) => [status, json?.['code']];

describe('a label of a prompt', () => {
  it('names the version that it was moved to, in every process, while latest names the newest', async () => {
    for (const template of ['One', 'Two', 'Three']) await create('moved', template);
    const moved = await move('moved', 'production', '1');
    expect([moved.status, dataOf(moved)]).toEqual([200, { name: 'moved', label: 'production', version: '1' }]);
    expect(dataOf(await get('moved?label=production'))).toMatchObject({
      version: '1',
      template: 'One',
      labels: ['production'],
      versions: [
        { version: '3', labels: ['latest'] },
        { version: '2', labels: [] },
        { version: '1', labels: ['production'] },
      ],
    });
    expect((await move('moved', 'production', 2)).status).toBe(200);
    await eventually(async () => dataOf(await get('moved?label=production', second))['version'] === '2');
    expect(dataOf(await get('moved?label=latest'))).toMatchObject({ version: '3', labels: ['latest'] });
    expect(dataOf(await get('moved'))).toMatchObject({ version: '3' });
  });

  it('is gone once deleted, and its version stays', async () => {
    await create('dropped', 'One');
    await move('dropped', 'staging', '1');
    const gone = await remove('dropped', 'staging');
    expect([gone.status, dataOf(gone)]).toEqual([200, { name: 'dropped', label: 'staging', deleted: true }]);
    expect(refusal(await get('dropped?label=staging'))).toEqual([404, 'prompt_not_found']);
    expect(refusal(await remove('dropped', 'staging'))).toEqual([404, 'not_found']);
    expect((await get('dropped?version=1')).status).toBe(200);
  });

  it('does not come back with a prompt of the same name that is created after a deletion', async () => {
    await create('again', 'One');
    await move('again', 'production', '1');
    expect((await call(api, 'DELETE', '/v1/prompts/again')).status).toBe(200);
    await create('again', 'Other');
    expect(refusal(await get('again?label=production'))).toEqual([404, 'prompt_not_found']);
  });

  it.each([
    ['latest, which cannot be moved', 'latest', '1', [422, 'invalid_request']],
    ['capital letters', 'Production', '1', [422, 'invalid_request']],
    ['37 characters', 'a'.repeat(37), '1', [422, 'invalid_request']],
    ['a version that does not exist', 'production', '9', [404, 'prompt_not_found']],
  ])('is refused with %s', async (_, label, version, refused) => {
    await create('strict', 'One', { version: '1' });
    expect(refusal(await move('strict', label, version))).toEqual(refused);
  });

  it('is refused for a prompt that does not exist, without a version, and together with a version', async () => {
    expect(refusal(await move('nothing', 'production', '1'))).toEqual([404, 'prompt_not_found']);
    expect(refusal(await remove('nothing', 'production'))).toEqual([404, 'prompt_not_found']);
    expect(refusal(await call(api, 'PUT', '/v1/prompts/moved/labels/production', { body: {} }))).toEqual([
      422,
      'invalid_request',
    ]);
    expect(refusal(await get('moved?label=production&version=1'))).toEqual([422, 'invalid_request']);
    expect(refusal(await create('named', 'One', { version: 'latest' }))).toEqual([422, 'invalid_request']);
  });

  it(`is refused beyond ${LABELS_MAX} labels, while those that exist can still be moved`, async () => {
    await create('full', 'One');
    await create('full', 'Two');
    for (let i = 0; i < LABELS_MAX; i++) expect((await move('full', `l${i}`, '1')).status).toBe(200);
    expect(refusal(await move('full', 'more', '1'))).toEqual([409, 'conflict']);
    expect((await move('full', 'l0', '2')).status).toBe(200);
  });

  it('of two that move it at the same time counts once, and both answers are 200', async () => {
    await create('raced', 'One');
    await create('raced', 'Two');
    const moves = await Promise.all(['1', '2', '1', '2'].map((version) => move('raced', 'production', version)));
    expect(moves.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(['1', '2']).toContain(dataOf(await get('raced?label=production'))['version']);
  });
});

describe('a template', () => {
  it('has the type that its shape has, and keeps the settings of its version', async () => {
    const messages = [{ role: 'user', content: 'Hi {{name}}' }];
    const made = await create('typed', messages, { type: 'chat', config: { temperature: 0.2 } });
    expect(dataOf(made)).toMatchObject({ type: 'chat', template: messages, config: { temperature: 0.2 } });
    expect(refusal(await create('typed', 'Hi', { type: 'chat' }))).toEqual([422, 'invalid_request']);
  });
});
