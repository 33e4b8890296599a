// The agent registry over two API instances on one nats-server: who can register, what an upsert does, what lists show, and
// what is left when a process dies between the spending of a token and the making of its agent.
import { hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { agentKey } from '../../../schemas/records/agent.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, ORG, startTestApi, type TestApi, tokenOf } from '../api/an_api.ts';

let nats: TestNats;
let one: TestApi;
let two: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  one = await startTestApi({ natsUrl: nats.url });
  two = await startTestApi({ natsUrl: nats.url });
});

afterAll(async () => {
  await one.close();
  await two.close();
  await nats.remove();
});

const AGENTS = `/orgs/${ORG}/agents`;
const codeOf = (answer: Answer): unknown[] => [answer.status, answer.json?.['code'] ?? null];
const dataOf = (answer: Answer): Record<string, unknown> => answer.json?.['data'] as Record<string, unknown>;
const rowsOf = (answer: Answer): Record<string, unknown>[] => answer.json?.['data'] as Record<string, unknown>[];

async function aToken(api = one): Promise<string> {
  const answer = await call(api, 'POST', `${AGENTS}/register-tokens`);
  expect(answer.status).toBe(201);
  return String(dataOf(answer)['register_token']);
}

const register = (body: Record<string, unknown>, api = one, headers: Record<string, string> = {}): Promise<Answer> =>
  call(api, 'POST', `${AGENTS}/register`, { body, headers });

async function registered(body: Record<string, unknown>): Promise<Record<string, unknown>> {
  const answer = await register({ register_token: await aToken(), ...body });
  expect([answer.status, answer.text]).toEqual([201, expect.stringContaining('"is_new":true') as string]);
  return dataOf(answer);
}

async function aKey(scopes: string[]): Promise<Record<string, string>> {
  const made = await call(one, 'POST', `/orgs/${ORG}/api-keys`, { body: { name: 'k', scopes } });
  return { 'X-Org-Api-Key': String(made.json?.['raw_key']) };
}

/** A token's record as it lies in KV. */
const tokenRecord = async (token: string) => {
  const kv = await one.log.bucket('register_tokens');
  const key = `${ORG}.${hash('sha256', token, 'hex')}`;
  const entry = await kv.get(key);
  return { kv, key, revision: entry?.revision ?? 0, record: entry?.json<Record<string, unknown>>() ?? {} };
};

describe('register tokens', () => {
  test('are shown once, last a day, and are kept hashed', async () => {
    const answer = await call(one, 'POST', `${AGENTS}/register-tokens`);
    expect(answer.status).toBe(201);
    const { register_token, expires_at } = dataOf(answer);
    expect(register_token).toMatch(/^rt_[A-Za-z0-9_-]{32,}$/);
    const left = Date.parse(String(expires_at)) - Date.now();
    expect(Math.abs(left - 24 * 3_600_000)).toBeLessThan(60_000);
    const { record } = await tokenRecord(String(register_token));
    expect(record).toMatchObject({ org_id: ORG, agent_id: null, expires_at });
    expect(JSON.stringify(record)).not.toContain(register_token);
  });

  test('are made by those who may, and agents are registered by those who may', async () => {
    const reader = await aKey(['agents:read']);
    expect(codeOf(await call(one, 'POST', `${AGENTS}/register-tokens`, { headers: reader }))).toEqual([
      403,
      'forbidden',
    ]);
    expect(codeOf(await register({ name: 'x' }, one, reader))).toEqual([403, 'forbidden']);
    expect(codeOf(await call(one, 'DELETE', `${AGENTS}/none`, { headers: reader }))).toEqual([403, 'forbidden']);
    expect((await call(one, 'GET', AGENTS, { headers: reader })).status).toBe(200);
    expect(codeOf(await call(one, 'GET', AGENTS, { headers: await aKey(['traces:read']) }))).toEqual([
      403,
      'forbidden',
    ]);
    const owner = asUser(await tokenOf({ sub: 'user_local', email: 'owner@localhost.localdomain' }));
    expect((await call(one, 'POST', `${AGENTS}/register-tokens`, { headers: owner })).status).toBe(201);
  });

  test.each([
    ['none', undefined],
    ['one that was made up', 'rt_madeupmadeupmadeupmadeupmadeupmadeup'],
    ['no token at all', 'hello'],
  ])('a first registration with %s is refused', async (_what, register_token) => {
    for (const agent_id of [undefined, 'nobody'])
      expect(codeOf(await register({ name: 'x', agent_id, register_token }))).toEqual([403, 'invalid_register_token']);
    expect(codeOf(await call(one, 'GET', `${AGENTS}/nobody`))).toEqual([404, 'agent_not_found']);
  });

  test('one of another org, and one that has expired, are refused', async () => {
    const operator = { Authorization: `Bearer ${ADMIN_TOKEN}` };
    const org = {
      org_id: 'org_other',
      name: 'Other',
      plan_name: 'enterprise',
      owner: { user_id: 'u', email: 'u@example.com' },
    };
    await call(one, 'POST', '/admin/orgs', { body: org, headers: operator });
    const made = await call(one, 'POST', '/admin/orgs/org_other/api-keys', {
      body: { name: 'k', scopes: ['*'] },
      headers: operator,
    });
    const theirs = { 'X-Org-Api-Key': String(made.json?.['raw_key']), 'X-Org-Id': 'org_other' };
    const token = await aToken();
    const abroad = await call(one, 'POST', '/orgs/org_other/agents/register', {
      body: { name: 'x', agent_id: 'abroad', register_token: token },
      headers: theirs,
    });
    expect(codeOf(abroad)).toEqual([403, 'invalid_register_token']);
    const { kv, key, revision, record } = await tokenRecord(token);
    await kv.update(key, JSON.stringify({ ...record, expires_at: new Date(Date.now() - 1).toISOString() }), revision);
    const late = await register({ name: 'x', agent_id: 'late', register_token: token });
    expect(codeOf(late)).toEqual([403, 'invalid_register_token']);
    expect(late.json?.['detail']).toContain('expired');
  });

  test('one that an older version stored under its hash alone still lets one agent in', async () => {
    const token = await aToken();
    const { kv, key, record } = await tokenRecord(token);
    await kv.put(hash('sha256', token, 'hex'), JSON.stringify(record));
    await one.log.jsm.streams.purge('KV_register_tokens', { filter: `$KV.register_tokens.${key}` });
    expect((await register({ name: 'x', agent_id: 'of-old', register_token: token })).status).toBe(201);
    expect(codeOf(await register({ name: 'x', agent_id: 'thief', register_token: token }))).toEqual([
      403,
      'invalid_register_token',
    ]);
  });

  test('one is spent on one agent', async () => {
    const register_token = await aToken();
    expect((await register({ name: 'first', agent_id: 'spent-1', register_token })).status).toBe(201);
    expect(codeOf(await register({ name: 'second', agent_id: 'spent-2', register_token }))).toEqual([
      403,
      'invalid_register_token',
    ]);
    expect(codeOf(await register({ name: 'third', register_token }))).toEqual([403, 'invalid_register_token']);
  });
});

describe('a registration', () => {
  test('is 201 the first time and 200 after, given fields replacing and others staying', async () => {
    const first = await registered({
      agent_id: 'bot 1/ä',
      name: 'Bot',
      framework: 'chain',
      version: '1.0',
      repo_url: 'https://example.com/bot',
      tags: ['a', 'b'],
      metadata: { department: 'sales' },
    });
    expect(first).toEqual({ agent_id: 'bot 1/ä', registered_at: expect.any(String) as string, is_new: true });
    const again = await register({ agent_id: 'bot 1/ä', name: 'Bot 2', version: null, tags: ['c'] });
    expect([again.status, dataOf(again)]).toEqual([200, { ...first, is_new: false }]);
    const got = await call(one, 'GET', `${AGENTS}/${encodeURIComponent('bot 1/ä')}`);
    expect(got.json?.['data']).toEqual({
      agent_id: 'bot 1/ä',
      name: 'Bot 2',
      framework: 'chain',
      version: null,
      repo_url: 'https://example.com/bot',
      registered_at: first['registered_at'],
      last_seen_at: null,
      tags: ['c'],
      metadata: { department: 'sales' },
      status: 'registered',
      archived_at: null,
      deprecated_at: null,
    });
  });

  test('that says nothing new writes nothing', async () => {
    await registered({ agent_id: 'same', name: 'Same', tags: ['x'] });
    const kv = await one.log.bucket('agents');
    const revision = async () => (await kv.get(agentKey(ORG, 'same')))?.revision;
    const before = await revision();
    expect((await register({ agent_id: 'same', name: 'Same' })).status).toBe(200);
    expect(await revision()).toBe(before);
  });

  test('of a known agent takes its own token or none, and no other', async () => {
    const register_token = await aToken();
    expect((await register({ agent_id: 'owned', name: 'A', register_token })).status).toBe(201);
    expect((await register({ agent_id: 'owned', name: 'B', register_token })).status).toBe(200);
    expect((await register({ agent_id: 'owned', name: 'C' })).status).toBe(200);
    for (const other of [await aToken(), 'rt_unknown'])
      expect(codeOf(await register({ agent_id: 'owned', name: 'D', register_token: other }))).toEqual([
        409,
        'agent_already_registered',
      ]);
    expect(dataOf(await call(one, 'GET', `${AGENTS}/owned`))['name']).toBe('C');
  });

  test('without an id gets a UUID, and the same one when it is repeated', async () => {
    const register_token = await aToken();
    const first = await register({ name: 'Nameless', register_token });
    const again = await register({ name: 'Nameless', register_token }, two);
    expect(dataOf(first)['agent_id']).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect([first.status, again.status, dataOf(again)]).toEqual([201, 200, { ...dataOf(first), is_new: false }]);
  });

  test('is seen at once by another instance that is asked to change it', async () => {
    for (let i = 0; i < 20; i++) {
      await registered({ agent_id: `swift-${String(i)}`, name: 'Swift' });
      expect((await register({ agent_id: `swift-${String(i)}`, name: 'Swifter' }, two)).status).toBe(200);
      expect((await call(two, 'DELETE', `${AGENTS}/swift-${String(i)}`)).status).toBe(200);
    }
  });

  test('with an unknown framework is invalid_framework', async () => {
    const answer = await register({ name: 'x', framework: 'cobol', register_token: await aToken() });
    expect(codeOf(answer)).toEqual([422, 'invalid_framework']);
    expect(answer.json?.['detail']).toMatch(/^framework: .*chatcompletion.*mcp/);
    expect(codeOf(await register({ name: 'x', framework: 'x'.repeat(65) }))).toEqual([422, 'invalid_framework']);
    for (const framework of ['chatcompletion', 'messages', 'chain', 'custom', 'app', 'otlp', 'mcp'])
      await registered({ agent_id: `fw-${framework}`, name: framework, framework });
  });

  test.each([
    ['no name', {}, 'name'],
    ['an empty name', { name: ' ' }, 'name'],
    ['a long name', { name: 'n'.repeat(201) }, 'name'],
    ['an empty id', { name: 'x', agent_id: '' }, 'agent_id'],
    ['a long id', { name: 'x', agent_id: 'a'.repeat(129) }, 'agent_id'],
    ['an id with a line break', { name: 'x', agent_id: 'a\nb' }, 'agent_id'],
    ['a framework that is no text', { name: 'x', framework: 7 }, 'framework'],
    ['many tags', { name: 'x', tags: Array.from({ length: 51 }, () => 't') }, 'tags'],
    ['a tag that is no text', { name: 'x', tags: ['t', 1] }, 'tags[1]'],
    ['metadata that is no object', { name: 'x', metadata: [] }, 'metadata'],
    ['much metadata', { name: 'x', metadata: { text: 'm'.repeat(16 * 1024) } }, 'metadata'],
    ['no object', [], 'body'],
  ])('with %s is invalid_request naming the field', async (_what, body, field) => {
    const answer = await call(one, 'POST', `${AGENTS}/register`, { body });
    expect([...codeOf(answer), String(answer.json?.['detail']).split(': ')[0]]).toEqual([
      422,
      'invalid_request',
      field,
    ]);
  });
});

describe('a process that dies between the token and its agent', () => {
  test.each([
    ['an id', 'half-made'],
    ['no id', undefined],
  ])('leaves a token that makes the same agent, with %s', async (_what, agent_id) => {
    const register_token = await aToken();
    const made = await register({ name: 'Half', agent_id, register_token });
    const id = String(dataOf(made)['agent_id']);
    // As it lies in KV when the process died right after it had spent the token.
    const agents = await one.log.bucket('agents');
    await agents.delete(agentKey(ORG, id));
    await eventually(async () => (await call(one, 'GET', `${AGENTS}/${id}`)).status === 404);
    expect((await tokenRecord(register_token)).record).toMatchObject({ agent_id: id });
    expect(codeOf(await register({ name: 'Thief', agent_id: 'thief', register_token }))).toEqual([
      403,
      'invalid_register_token',
    ]);
    const again = await register({ name: 'Half', agent_id, register_token }, two);
    expect([again.status, dataOf(again)]).toEqual([
      201,
      expect.objectContaining({ agent_id: id, is_new: true }) as unknown,
    ]);
  });
});

describe('registrations at the same time', () => {
  test('with one token make one agent', async () => {
    for (let round = 0; round < 10; round++) {
      const register_token = await aToken();
      const answers = await Promise.all(
        [one, two, one, two].map((api, i) =>
          register({ name: 'R', agent_id: `race-${String(round)}-${String(i)}`, register_token }, api),
        ),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 403, 403, 403]);
    }
    const list = await call(one, 'GET', `${AGENTS}?name=R&limit=200`);
    expect(rowsOf(list).filter(({ agent_id }) => String(agent_id).startsWith('race-'))).toHaveLength(10);
  });

  test('of one agent make it once', async () => {
    const register_token = await aToken();
    const answers = await Promise.all(
      [one, two, one, two].map((api) => register({ name: 'T', agent_id: 'twin', register_token }, api)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 201]);
  });

  test('of one agent, each with other fields, lose none', async () => {
    await registered({ agent_id: 'merged', name: 'M' });
    const answers = await Promise.all([
      register({ agent_id: 'merged', name: 'M', version: '2' }),
      register({ agent_id: 'merged', name: 'M', repo_url: 'https://r' }, two),
      register({ agent_id: 'merged', name: 'M', tags: ['t'] }, two),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    await eventually(async () => {
      const { version, repo_url, tags } = dataOf(await call(one, 'GET', `${AGENTS}/merged`));
      return version === '2' && repo_url === 'https://r' && JSON.stringify(tags) === '["t"]';
    });
  });
});

describe('archiving', () => {
  test('takes an agent out of the list but not away, and registering brings it back', async () => {
    const { registered_at } = await registered({ agent_id: 'gone', name: 'Gone girl' });
    const gone = await call(one, 'DELETE', `${AGENTS}/gone`);
    expect([gone.status, gone.json?.['data']]).toEqual([200, { agent_id: 'gone', deleted: true }]);
    const row = dataOf(await call(one, 'GET', `${AGENTS}/gone`));
    expect(row).toMatchObject({ status: 'archived', archived_at: expect.any(String) as string });
    const again = await call(one, 'DELETE', `${AGENTS}/gone`);
    expect([again.status, again.json?.['data']]).toEqual([200, { agent_id: 'gone', deleted: true }]);
    expect(dataOf(await call(one, 'GET', `${AGENTS}/gone`))).toEqual(row);
    const names = async (query: string) =>
      rowsOf(await call(one, 'GET', `${AGENTS}?name=gone girl${query}`)).map(({ agent_id }) => agent_id);
    expect([await names(''), await names('&archived=false'), await names('&archived=true')]).toEqual([
      [],
      [],
      ['gone'],
    ]);
    const back = await register({ agent_id: 'gone', name: 'Gone girl' });
    expect([back.status, dataOf(back)]).toEqual([200, { agent_id: 'gone', registered_at, is_new: false }]);
    expect(await names('')).toEqual(['gone']);
  });

  test('what is not there is agent_not_found', async () => {
    // From about 3,000 characters on a key would end the connection to NATS: the next write shows that it is there.
    for (const id of ['none', encodeURIComponent('\u0000'), 'x'.repeat(129), 'x'.repeat(3000), 'x'.repeat(8000)]) {
      expect(codeOf(await call(one, 'GET', `${AGENTS}/${id}`))).toEqual([404, 'agent_not_found']);
      expect(codeOf(await call(one, 'DELETE', `${AGENTS}/${id}`))).toEqual([404, 'agent_not_found']);
      expect((await call(one, 'POST', `${AGENTS}/register-tokens`)).status).toBe(201);
    }
  });
});

describe('the list', () => {
  test('filters by framework and by name whatever the case, and pages', async () => {
    for (let i = 0; i < 5; i++)
      await registered({
        agent_id: `list-${String(i)}`,
        name: `Lister ${String(i)}`,
        framework: i % 2 === 0 ? 'otlp' : 'mcp',
      });
    const ids = async (query: string) =>
      rowsOf(await call(one, 'GET', `${AGENTS}?${query}`)).map(({ agent_id }) => agent_id);
    expect(await ids('name=LISTER')).toEqual(['list-4', 'list-3', 'list-2', 'list-1', 'list-0']);
    expect(await ids('name=ister%203')).toEqual(['list-3']);
    expect(await ids('name=lister&framework=mcp')).toEqual(['list-3', 'list-1']);
    const page = await call(one, 'GET', `${AGENTS}?name=lister&limit=2&offset=2`);
    expect(rowsOf(page).map(({ agent_id }) => agent_id)).toEqual(['list-2', 'list-1']);
    expect(page.json?.['meta']).toMatchObject({ total: 5, page: 2, per_page: 2, has_more: true });
    const past = await call(one, 'GET', `${AGENTS}?name=lister&limit=2&offset=8`);
    expect([rowsOf(past), past.json?.['meta']]).toEqual([
      [],
      expect.objectContaining({ total: 5, has_more: false }) as unknown,
    ]);
  });

  test.each([
    ['framework=cobol', 'invalid_framework'],
    [`framework=${'x'.repeat(65)}`, 'invalid_framework'],
    ['limit=0', 'invalid_request'],
    ['limit=201', 'invalid_request'],
    ['offset=-1', 'invalid_request'],
    ['archived=maybe', 'invalid_request'],
  ])('%s is %s', async (query, code) => {
    const answer = await call(one, 'GET', `${AGENTS}?${query}`);
    expect(codeOf(answer)).toEqual([422, code]);
    expect(answer.json?.['detail']).toContain(`${query.split('=')[0] ?? ''}: `);
  });

  test('shows an org its own agents only', async () => {
    const operator = { Authorization: `Bearer ${ADMIN_TOKEN}` };
    const org = {
      org_id: 'org_lone',
      name: 'Lone',
      plan_name: 'enterprise',
      owner: { user_id: 'u', email: 'u@example.com' },
    };
    await call(one, 'POST', '/admin/orgs', { body: org, headers: operator });
    const made = await call(one, 'POST', '/admin/orgs/org_lone/api-keys', {
      body: { name: 'k', scopes: ['*'] },
      headers: operator,
    });
    const theirs = { 'X-Org-Api-Key': String(made.json?.['raw_key']), 'X-Org-Id': 'org_lone' };
    await registered({ agent_id: 'private', name: 'Private' });
    expect(rowsOf(await call(one, 'GET', '/orgs/org_lone/agents', { headers: theirs }))).toEqual([]);
    expect(codeOf(await call(one, 'GET', '/orgs/org_lone/agents/private', { headers: theirs }))).toEqual([
      404,
      'agent_not_found',
    ]);
    expect(codeOf(await call(one, 'GET', `${AGENTS}/private`, { headers: theirs }))).toEqual([403, 'cross_org_access']);
  });
});

test('everything is there after the API and NATS were killed, and a registry that is away is upstream_unavailable', async () => {
  const register_token = await aToken();
  await registered({ agent_id: 'kept', name: 'Kept', metadata: { n: 1 } });
  await nats.kill();
  expect((await call(one, 'GET', `${AGENTS}/kept`)).status).toBe(200);
  expect(codeOf(await register({ agent_id: 'kept', name: 'Changed' }))).toEqual([502, 'upstream_unavailable']);
  await nats.start();
  const three = await startTestApi({ natsUrl: nats.url });
  try {
    expect(dataOf(await call(three, 'GET', `${AGENTS}/kept`))).toMatchObject({ name: 'Kept', metadata: { n: 1 } });
    expect((await register({ agent_id: 'late', name: 'Late', register_token }, three)).status).toBe(201);
    await eventually(async () => (await call(one, 'GET', `${AGENTS}/late`)).status === 200, {
      what: 'the agent at an instance that was cut off',
    });
  } finally {
    await three.close();
  }
});
