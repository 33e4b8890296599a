// The prompt registry over HTTP: immutable versions, the current version, limits, and isolation
// between organizations.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ORG_BYTES_MAX } from '../../../api/control/prompts/prompts.ts';
import { TEMPLATE_BYTES_MAX } from '../../../schemas/records/prompt.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { makeOtherOrg } from '../api/a_cast.ts';
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
const create = (body: Data, at = api) => call(at, 'POST', '/v1/prompts', { body });
const get = (path: string, at = api) => call(at, 'GET', `/v1/prompts${path}`);

describe('a prompt', () => {
  it('a prompt numbers versions without a name, and its newest version is the current one', async () => {
    const first = await create({ name: 'greet', template: 'Hi {{name}}', model: 'gpt-4o' });
    expect([first.status, dataOf(first)]).toEqual([
      201,
      {
        name: 'greet',
        version: '1',
        type: 'text',
        template: 'Hi {{name}}',
        model: 'gpt-4o',
        config: null,
        variables: ['name'],
        labels: ['latest'],
        created_at: expect.stringMatching(/Z$/) as string,
      },
    ]);
    const chat = [
      { role: 'system', content: 'You greet {{shop}}.' },
      { role: 'user', content: '{{name}}' },
    ];
    expect(dataOf(await create({ name: 'greet', template: chat, version: 'beta' }))).toMatchObject({
      version: 'beta',
      type: 'chat',
      template: chat,
      model: null,
      variables: ['shop', 'name'],
    });
    expect(dataOf(await create({ name: 'greet', template: 'Hello {{name}}' }))).toMatchObject({ version: '2' });
    const newest = await get('/greet');
    expect([newest.status, dataOf(newest)]).toMatchObject([
      200,
      {
        version: '2',
        template: 'Hello {{name}}',
        versions: [{ version: '2' }, { version: 'beta' }, { version: '1', model: 'gpt-4o' }],
      },
    ]);
    expect(dataOf(await get('/greet?version=beta'))).toMatchObject({ version: 'beta', template: chat });
  });

  it("a prompt's version created again unchanged is the same, and changed is a conflict", async () => {
    const body = { name: 'fixed', version: 'v1', template: 'Same', model: 'm' };
    const made = await create(body);
    const again = await create(body);
    expect([made.status, again.status]).toEqual([201, 201]);
    expect(dataOf(again)).toEqual(dataOf(made));
    for (const other of [
      { ...body, template: 'Other' },
      { ...body, model: 'n' },
      { ...body, model: undefined },
    ]) {
      const refused = await create(other);
      expect([refused.status, refused.json?.['code']]).toEqual([409, 'conflict']);
    }
    expect(dataOf(await get('/fixed'))).toMatchObject({ template: 'Same', model: 'm' });
  });

  it('many versions created at the same time in two processes each have a number', async () => {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => create({ name: 'busy', template: `t${i}` }, i % 2 === 0 ? api : second)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    expect(answers.map((answer) => Number(dataOf(answer)['version'])).sort((a, b) => a - b)).toEqual(
      answers.map((_, i) => i + 1),
    );
  });

  it('a version created at one process is current at another', async () => {
    await create({ name: 'shared', template: 'one' });
    await eventually(async () => (await get('/shared', second)).status === 200);
    await create({ name: 'shared', template: 'two' }, second);
    await eventually(async () => dataOf(await get('/shared'))['template'] === 'two');
  });

  it("a prompt's name may contain signs", async () => {
    const name = 'support/v1:answer.short-form_2';
    expect((await create({ name, template: 'x' })).status).toBe(201);
    expect(dataOf(await get(`/${encodeURIComponent(name)}`))).toMatchObject({ name });
  });

  it('a missing prompt is 404', async () => {
    for (const path of ['/nobody', '/greet?version=99', '/__proto__'])
      expect((await get(path)).json).toMatchObject({ code: 'prompt_not_found' });
  });

  it('an invalid prompt is rejected naming the field', async () => {
    const wrong: [Data, string][] = [
      [{ template: 'x' }, 'name'],
      [{ name: 'a@b', template: 'x' }, 'name'],
      [{ name: 'x' }, 'template'],
      [{ name: 'x', template: '' }, 'template'],
      [{ name: 'x', template: [] }, 'template'],
      [{ name: 'x', template: [{ role: 'user' }] }, 'template'],
      [{ name: 'x', template: 'a'.repeat(TEMPLATE_BYTES_MAX) }, 'template'],
      [{ name: 'x', template: 'x', version: 'a@b' }, 'version'],
      [{ name: 'x', template: 'x', model: 5 }, 'model'],
      [{ name: 'x', template: 'x', models: [] }, 'models'],
    ];
    for (const [body, field] of wrong) {
      const { status, json } = await create(body);
      expect([field, status, json?.['code']]).toEqual([field, 422, 'invalid_request']);
      expect(json?.['detail']).toMatch(new RegExp(`^${field}\\b`));
    }
  });

  it('a prompt belongs to its organization', async () => {
    const other = await makeOtherOrg(api);
    const mine = await call(api, 'GET', '/v1/prompts/greet', { headers: other.owner });
    expect([mine.status, mine.json?.['code']]).toEqual([404, 'prompt_not_found']);
    expect((await call(api, 'GET', '/v1/prompts', { headers: other.owner })).json).toMatchObject({
      data: [],
      meta: { total: 0 },
    });
    const made = await call(api, 'POST', '/v1/prompts', {
      headers: other.owner,
      body: { name: 'greet', template: 'theirs' },
    });
    expect(dataOf(made)).toMatchObject({ version: '1' });
    expect(dataOf(await get('/greet'))).toMatchObject({ template: 'Hello {{name}}' });
  });
});

describe('the list', () => {
  it('the list has each prompt once, newest first, by pages and by name', async () => {
    await create({ name: 'Zebra', template: 'a' });
    await create({ name: 'zeta', template: 'a' });
    await create({ name: 'Zebra', template: 'b' });
    const { json } = await get('?name=zE');
    expect(json?.['data']).toMatchObject([
      { name: 'Zebra', version: '2', template: 'b' },
      { name: 'zeta', version: '1' },
    ]);
    expect(json?.['meta']).toMatchObject({ total: 2, page: 1, per_page: 50, has_more: false });
    const page = await get('?name=ze&limit=1&offset=1');
    expect(page.json).toMatchObject({ data: [{ name: 'zeta' }], meta: { total: 2, page: 2, has_more: false } });
  });
});

describe('what an org may have', () => {
  it('the prompts of an organization are bounded in bytes', async () => {
    const template = 'x'.repeat(TEMPLATE_BYTES_MAX - 100);
    const fits = Math.floor(ORG_BYTES_MAX / template.length);
    const answers: number[] = [];
    for (let i = 0; i <= fits; i += 32)
      answers.push(
        ...(await Promise.all(Array.from({ length: 32 }, (_, j) => create({ name: `big-${i + j}`, template })))).map(
          ({ status }) => status,
        ),
      );
    expect(new Set(answers)).toEqual(new Set([201, 409]));
    expect((await create({ name: 'big-last', template })).json?.['detail']).toContain('bytes');
  });
});
