// API keys and the members that own them, over two API processes on one nats-server: who owns a
// key, what happens to it when its member is demoted or removed, and to which roles a key can
// invite.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { OrgRecord } from '../../../schemas/records/org.ts';
import { auditEntries } from '../../support/audited.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { makeOrg } from '../a_tenant.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, startTestApi, type TestApi, tokenOf } from './an_api.ts';

const operator = { Authorization: `Bearer ${ADMIN_TOKEN}` };
let nats: TestNats;
let one: TestApi;
let two: TestApi;
let org = '';
let serial = 0;

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

interface Key {
  id: string;
  raw_key: string;
}

const dataOf = (answer: Answer) => answer.json?.['data'] as Record<string, unknown>;
const said = (answer: Answer) => [answer.status, answer.json?.['code']];
const asKey = ({ raw_key }: Key) => ({ 'X-Org-Api-Key': raw_key, 'X-Org-Id': org });

async function send(name: string, method: string, path: string, body?: unknown): Promise<Answer> {
  const headers = asUser(await tokenOf({ sub: name, email: `${name}@example.com` }), org);
  return call(one, method, `/orgs/${org}${path}`, { headers, ...(body === undefined ? {} : { body }) });
}

async function join(name: string, role: string): Promise<void> {
  const invited = await send('ann', 'POST', '/members', { email: `${name}@example.com`, role });
  expect(invited.status).toBe(201);
  expect((await send(name, 'POST', '/members/accept', { token: dataOf(invited)['token'] })).status).toBe(200);
}

async function makeKey(
  scopes: string[],
  headers: Record<string, string | undefined>,
  path = `/orgs/${org}/api-keys`,
): Promise<Key> {
  const answer = await call(one, 'POST', path, { headers, body: { name: scopes.join(' '), scopes } });
  expect(answer.status).toBe(201);
  return answer.json as unknown as Key;
}

const keyOf = async (name: string, scopes: string[]): Promise<Key> =>
  makeKey(scopes, asUser(await tokenOf({ sub: name, email: `${name}@example.com` }), org));

/** Resolves once a process answers a call with the key as wanted. */
async function answersSoon(
  api: TestApi,
  key: Key,
  method: string,
  path: string,
  wanted: [number, string | undefined],
): Promise<void> {
  await eventually(
    async () =>
      JSON.stringify(
        said(await call(api, method, path, { headers: asKey(key), body: method === 'GET' ? undefined : {} })),
      ) === JSON.stringify(wanted),
    {
      what: `${method} ${path} to be answered ${wanted[0]}`,
    },
  );
}

const keysShown = async () =>
  Object.fromEntries(
    (
      (await send('ann', 'GET', '/api-keys')).json?.['data'] as {
        id: string;
        created_by: string | null;
        status: string;
      }[]
    ).map((key) => [key.id, [key.created_by, key.status]]),
  );

async function auditedChanges(action: string): Promise<Record<string, unknown>> {
  const entries = await auditEntries(one.log);
  const last = entries.findLast((entry) => entry.org_id === org && entry.action === action && entry.phase === 'done');
  return JSON.parse(last?.changes ?? 'null') as Record<string, unknown>;
}

beforeEach(async () => {
  org = `org_k${++serial}`;
  await makeOrg(one, { org_id: org });
});

describe('a key invites', () => {
  test('a key with org:write alone invites nobody, and a key with every scope invites up to admin', async () => {
    const narrow = await keyOf('ann', ['org:write']);
    for (const role of ['viewer', 'member', 'admin', 'owner']) {
      const answer = await call(one, 'POST', `/orgs/${org}/members`, {
        headers: asKey(narrow),
        body: { email: 'eve@example.com', role },
      });
      expect([role, ...said(answer)]).toEqual([role, 403, 'forbidden']);
      expect(answer.json?.['detail']).toContain(`for the role ${role} it lacks`);
    }
    const wide = await keyOf('ann', ['*']);
    const invite = (role: string) =>
      call(one, 'POST', `/orgs/${org}/members`, { headers: asKey(wide), body: { email: `${role}@example.com`, role } });
    expect([(await invite('admin')).status, said(await invite('owner'))]).toEqual([201, [403, 'forbidden']]);
  });

  test('a key does not reduce an invited admin to a role with fewer scopes', async () => {
    await send('ann', 'POST', '/members', { email: 'bob@example.com', role: 'admin' });
    const key = await keyOf('ann', ['org:write', 'org:read', 'agents:read', 'references:read']);
    const body = { email: 'bob@example.com', role: 'viewer' };
    expect(said(await call(one, 'POST', `/orgs/${org}/members`, { headers: asKey(key), body }))).toEqual([
      403,
      'forbidden',
    ]);
  });
});

describe('a key belongs', () => {
  test("a key belongs to the member who created it, or to the member behind the key that created it; an operator's key belongs to nobody", async () => {
    await join('bob', 'admin');
    const own = await keyOf('bob', ['*']);
    const child = await makeKey(['traces:read'], asKey(own));
    const first = await makeKey(['*'], operator, `/admin/orgs/${org}/api-keys`);
    const grandchild = await makeKey(['org:read'], asKey(first));
    expect(await keysShown()).toEqual({
      [own.id]: ['bob', 'active'],
      [child.id]: ['bob', 'active'],
      [first.id]: [null, 'active'],
      [grandchild.id]: [null, 'active'],
    });
  });

  test('a key created before keys had owners is stored without a member and keeps working', async () => {
    const kv = await one.log.bucket('api_keys');
    const key = await makeKey(['org:read'], operator, `/admin/orgs/${org}/api-keys`);
    for await (const hash of await kv.keys()) {
      const entry = await kv.get(hash);
      const record = entry?.operation === 'PUT' ? entry.json<Record<string, unknown>>() : {};
      if (record['id'] !== key.id) continue;
      delete record['created_by'];
      await kv.put(hash, JSON.stringify(record));
    }
    await answersSoon(two, key, 'GET', `/orgs/${org}`, [200, undefined]);
    expect(await keysShown()).toEqual({ [key.id]: [null, 'active'] });
  });
});

describe('a demotion of the member', () => {
  test('the demotion of a member caps their keys at the new role in every process within a second, and lists them', async () => {
    await join('bob', 'admin');
    const all = await keyOf('bob', ['*']);
    const only = await keyOf('bob', ['org:write']);
    const reads = await keyOf('bob', ['org:read', 'agents:read']);
    const first = await makeKey(['*'], operator, `/admin/orgs/${org}/api-keys`);
    await answersSoon(two, only, 'POST', `/orgs/${org}/members`, [422, 'invalid_request']);
    const demoted = await send('ann', 'PATCH', '/members/bob', { role: 'member' });
    expect(demoted.status).toBe(200);
    const effects = dataOf(demoted)['api_keys'] as { id: string }[];
    const wanted = [
      { id: all.id, name: '*', effect: 'capped' },
      { id: only.id, name: 'org:write', effect: 'revoked' },
      // With org:read, an admin can also read the plan and the audit log, and a member cannot.
      { id: reads.id, name: 'org:read agents:read', effect: 'capped' },
    ];
    expect(effects.toSorted(byId)).toEqual(wanted.toSorted(byId));
    expect(await auditedChanges('member.role_change')).toMatchObject({
      role: { from: 'admin', to: 'member' },
      api_keys: expect.arrayContaining([{ id: only.id, effect: 'revoked' }]) as unknown,
    });
    for (const api of [one, two]) {
      await answersSoon(api, only, 'GET', `/orgs/${org}`, [401, 'unauthenticated']);
      await answersSoon(api, all, 'POST', `/orgs/${org}/webhooks`, [403, 'forbidden']);
      await answersSoon(api, all, 'POST', `/orgs/${org}/api-keys`, [403, 'forbidden']);
      await answersSoon(api, all, 'GET', `/orgs/${org}`, [200, undefined]);
      await answersSoon(api, reads, 'GET', `/orgs/${org}/agents`, [200, undefined]);
      await answersSoon(api, first, 'POST', `/orgs/${org}/webhooks`, [422, 'invalid_request']);
    }
    const refusal = await call(one, 'POST', `/orgs/${org}/webhooks`, { headers: asKey(all), body: {} });
    expect(refusal.json?.['detail']).toBe(
      'The API key belongs to a member whose role is now member, and that role lacks the permission integrations:write.',
    );
    expect((await keysShown())[only.id]).toEqual(['bob', 'revoked']);
  });

  test('the next promotion gives the keys back what their scopes and the role permit', async () => {
    await join('bob', 'admin');
    const key = await keyOf('bob', ['org:write']);
    await send('ann', 'PATCH', '/members/bob', { role: 'viewer' });
    await answersSoon(two, key, 'POST', `/orgs/${org}/members`, [401, 'unauthenticated']);
    const back = await send('ann', 'PATCH', '/members/bob', { role: 'admin' });
    expect(dataOf(back)['api_keys']).toEqual([{ id: key.id, name: 'org:write', effect: 'restored' }]);
    await answersSoon(two, key, 'POST', `/orgs/${org}/members`, [422, 'invalid_request']);
  });

  test('a demotion that leaves all keys unchanged lists none', async () => {
    await send('ann', 'POST', '/members', { email: 'x@example.com', role: 'owner' });
    await join('bob', 'owner');
    const key = await keyOf('bob', ['*']);
    const demoted = await send('ann', 'PATCH', '/members/bob', { role: 'admin' });
    expect(dataOf(demoted)['api_keys']).toEqual([]);
    await answersSoon(two, key, 'POST', `/orgs/${org}/webhooks`, [422, 'invalid_request']);
  });
});

describe('the removal of the member', () => {
  test('the removal of a member revokes their keys and those created with them for ever, also when the person returns', async () => {
    await join('bob', 'admin');
    const own = await keyOf('bob', ['*']);
    const child = await makeKey(['traces:read'], asKey(own));
    const others = await keyOf('ann', ['org:read']);
    await answersSoon(two, child, 'GET', `/orgs/${org}`, [403, 'forbidden']);
    const removed = await send('ann', 'DELETE', '/members/bob');
    expect(dataOf(removed)).toMatchObject({ user_id: 'bob', deleted: true });
    expect((dataOf(removed)['api_keys'] as { id: string }[]).toSorted(byId)).toEqual(
      [
        { id: own.id, name: '*', effect: 'revoked' },
        { id: child.id, name: 'traces:read', effect: 'revoked' },
      ].toSorted(byId),
    );
    expect(await auditedChanges('member.remove')).toMatchObject({
      api_keys: expect.arrayContaining([{ id: own.id, effect: 'revoked' }]) as unknown,
    });
    for (const api of [one, two])
      for (const key of [own, child]) await answersSoon(api, key, 'GET', `/orgs/${org}`, [401, 'unauthenticated']);
    expect(await keysShown()).toEqual({ [others.id]: ['ann', 'active'] });
    await join('bob', 'admin');
    for (const api of [one, two])
      expect(said(await call(api, 'GET', `/orgs/${org}`, { headers: asKey(own) }))).toEqual([401, 'unauthenticated']);
  });

  test('no key of a removed member works where the process died right after the membership was written, not even after a restart', async () => {
    await join('bob', 'admin');
    const key = await keyOf('bob', ['*']);
    const kv = await one.log.bucket('orgs');
    const entry = await kv.get(org);
    if (entry === null) throw new Error('the organization has no record');
    const record = entry.json<OrgRecord>();
    const members = record.members.filter(({ user_id }) => user_id !== 'bob');
    await kv.update(org, JSON.stringify({ ...record, members }), entry.revision);
    for (const api of [one, two]) await answersSoon(api, key, 'GET', `/orgs/${org}`, [401, 'unauthenticated']);
    const restarted = await startTestApi({ natsUrl: nats.url });
    try {
      expect(said(await call(restarted, 'GET', `/orgs/${org}`, { headers: asKey(key) }))).toEqual([
        401,
        'unauthenticated',
      ]);
    } finally {
      await restarted.close();
    }
    expect(await keysShown()).toEqual({ [key.id]: ['bob', 'revoked'] });
    expect((await send('ann', 'DELETE', `/api-keys/${key.id}`)).status).toBe(200);
    expect(await keysShown()).toEqual({});
  });
});

const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);
