// The agent registry over two API processes: what a registration changes, how agents are archived,
// and what the list shows.
import { expect, test } from 'vitest';
import { agentKey } from '../../../schemas/records/agent.ts';
import { eventually } from '../../support/wait.ts';
import { call, ORG, startTestApi } from '../api/an_api.ts';
import { anAccount } from '../a_tenant.ts';
import { nats, one, two, AGENTS, codeOf, dataOf, rowsOf, aToken, register, registered } from './a_registry.ts';

test('a registration is 201 the first time and 200 later, replaces the given fields and keeps the others', async () => {
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
    deprecates_at: expect.any(String) as string,
  });
});

test('a registration without a change writes nothing', async () => {
  await registered({ agent_id: 'same', name: 'Same', tags: ['x'] });
  const kv = await one.log.bucket('agents');
  const revision = async () => (await kv.get(agentKey(ORG, 'same')))?.revision;
  const before = await revision();
  expect((await register({ agent_id: 'same', name: 'Same' })).status).toBe(200);
  expect(await revision()).toBe(before);
});

test('registering a known agent takes its own token or none, and no other', async () => {
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

test('a registration without an id gets a UUID, and the same one when it is repeated', async () => {
  const register_token = await aToken();
  const first = await register({ name: 'Nameless', register_token });
  const again = await register({ name: 'Nameless', register_token }, two);
  expect(dataOf(first)['agent_id']).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  expect([first.status, again.status, dataOf(again)]).toEqual([201, 200, { ...dataOf(first), is_new: false }]);
});

test('a registration is visible at once to another process that changes it', async () => {
  for (let i = 0; i < 20; i++) {
    await registered({ agent_id: `swift-${i}`, name: 'Swift' });
    expect((await register({ agent_id: `swift-${i}`, name: 'Swifter' }, two)).status).toBe(200);
    expect((await call(two, 'DELETE', `${AGENTS}/swift-${i}`)).status).toBe(200);
  }
});

test('a registration with an unknown framework is invalid_framework', async () => {
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
])('a registration with %s is invalid_request and names the field', async (_what, body, field) => {
  const answer = await call(one, 'POST', `${AGENTS}/register`, { body });
  expect([...codeOf(answer), String(answer.json?.['detail']).split(': ')[0]]).toEqual([422, 'invalid_request', field]);
});

test('concurrent registrations with one token make one agent', async () => {
  for (let round = 0; round < 10; round++) {
    const register_token = await aToken();
    const answers = await Promise.all(
      [one, two, one, two].map((api, i) =>
        register({ name: 'R', agent_id: `race-${round}-${i}`, register_token }, api),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 403, 403, 403]);
  }
  const list = await call(one, 'GET', `${AGENTS}?name=R&limit=200`);
  expect(rowsOf(list).filter(({ agent_id }) => String(agent_id).startsWith('race-'))).toHaveLength(10);
});

test('concurrent registrations of one agent make it once', async () => {
  const register_token = await aToken();
  const answers = await Promise.all(
    [one, two, one, two].map((api) => register({ name: 'T', agent_id: 'twin', register_token }, api)),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 201]);
});

test('concurrent registrations of one agent with different fields keep every field', async () => {
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

test('archiving removes an agent from the list and keeps it readable, and registering brings it back', async () => {
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
  expect([await names(''), await names('&archived=false'), await names('&archived=true')]).toEqual([[], [], ['gone']]);
  const back = await register({ agent_id: 'gone', name: 'Gone girl' });
  expect([back.status, dataOf(back)]).toEqual([200, { agent_id: 'gone', registered_at, is_new: false }]);
  expect(await names('')).toEqual(['gone']);
});

test('archiving or reading an unknown agent is agent_not_found', async () => {
  // A KV key of about 3,000 characters or more would close the connection to NATS. The write that
  // follows shows that the connection is still open.
  for (const id of ['none', encodeURIComponent('\u0000'), 'x'.repeat(129), 'x'.repeat(3000), 'x'.repeat(8000)]) {
    expect(codeOf(await call(one, 'GET', `${AGENTS}/${id}`))).toEqual([404, 'agent_not_found']);
    expect(codeOf(await call(one, 'DELETE', `${AGENTS}/${id}`))).toEqual([404, 'agent_not_found']);
    expect((await call(one, 'POST', `${AGENTS}/register-tokens`)).status).toBe(201);
  }
});

test('the list of agents filters by framework and by name in any case, and pages', async () => {
  for (let i = 0; i < 5; i++)
    await registered({
      agent_id: `list-${i}`,
      name: `Lister ${i}`,
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
])('the list of agents answers %s with %s', async (query, code) => {
  const answer = await call(one, 'GET', `${AGENTS}?${query}`);
  expect(codeOf(answer)).toEqual([422, code]);
  expect(answer.json?.['detail']).toContain(`${query.split('=')[0] ?? ''}: `);
});

test('the list of agents shows an organization its own agents only', async () => {
  const { key: theirs } = await anAccount({ api: one }, { org: 'org_lone' });
  await registered({ agent_id: 'private', name: 'Private' });
  expect(rowsOf(await call(one, 'GET', '/orgs/org_lone/agents', { headers: theirs }))).toEqual([]);
  expect(codeOf(await call(one, 'GET', '/orgs/org_lone/agents/private', { headers: theirs }))).toEqual([
    404,
    'agent_not_found',
  ]);
  expect(codeOf(await call(one, 'GET', `${AGENTS}/private`, { headers: theirs }))).toEqual([403, 'cross_org_access']);
});

test('agents outlive a kill of the API and NATS, and a registry that cannot be reached is upstream_unavailable', async () => {
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
