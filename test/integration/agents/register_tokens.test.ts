// Register tokens: which callers create and use them, and what remains when a process dies after it
// has spent a token and before it has created the token's agent.
import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { agentKey } from '../../../schemas/records/agent.ts';
import { eventually } from '../../support/wait.ts';
import { asUser, call, ORG, tokenOf } from '../api/an_api.ts';
import { anAccount } from '../a_tenant.ts';
import { one, two, AGENTS, codeOf, dataOf, aToken, register, aKey, tokenRecord } from './a_registry.ts';

test('a register token is shown once, lasts a day, and is stored hashed', async () => {
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

test('register tokens and agents are made by callers with the scope only', async () => {
  const reader = await aKey(['agents:read']);
  expect(codeOf(await call(one, 'POST', `${AGENTS}/register-tokens`, { headers: reader }))).toEqual([403, 'forbidden']);
  expect(codeOf(await register({ name: 'x' }, one, reader))).toEqual([403, 'forbidden']);
  expect(codeOf(await call(one, 'DELETE', `${AGENTS}/none`, { headers: reader }))).toEqual([403, 'forbidden']);
  expect((await call(one, 'GET', AGENTS, { headers: reader })).status).toBe(200);
  expect(codeOf(await call(one, 'GET', AGENTS, { headers: await aKey(['traces:read']) }))).toEqual([403, 'forbidden']);
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

test('a register token of another organization and an expired one are refused', async () => {
  const { key: theirs } = await anAccount({ api: one }, { org: 'org_other' });
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

test('a register token that an older version stored under its hash alone still registers one agent', async () => {
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

test('a register token registers one agent', async () => {
  const register_token = await aToken();
  expect((await register({ name: 'first', agent_id: 'spent-1', register_token })).status).toBe(201);
  expect(codeOf(await register({ name: 'second', agent_id: 'spent-2', register_token }))).toEqual([
    403,
    'invalid_register_token',
  ]);
  expect(codeOf(await register({ name: 'third', register_token }))).toEqual([403, 'invalid_register_token']);
});

test.each([
  ['an id', 'half-made'],
  ['no id', undefined],
])(
  'a process that dies between token and agent leaves a token that registers the same agent, with %s',
  async (_what, agent_id) => {
    const register_token = await aToken();
    const made = await register({ name: 'Half', agent_id, register_token });
    const id = String(dataOf(made)['agent_id']);
    // KV now holds what a process leaves when it dies immediately after it has spent the token.
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
  },
);
