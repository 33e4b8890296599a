// Invitations to an organization over two API processes: who may invite, who may accept, and when
// an invitation expires.
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { call, KEY, startTestApi } from './an_api.ts';
import {
  DAY_MS,
  nats,
  one,
  two,
  org,
  as,
  send,
  dataOf,
  said,
  join,
  rolesOf,
  setClocksAhead,
} from './members_of_an_org.ts';

test('an invitation is listed, is accepted under the sub of the token, and never shows its token again', async () => {
  const invited = await send('ann', 'POST', '/members', { email: 'Bob@example.com', role: 'admin' });
  expect(invited.status).toBe(201);
  const { token, ...member } = dataOf(invited);
  expect(member).toEqual({
    user_id: expect.stringMatching(/^usr_/) as string,
    email: 'Bob@example.com',
    role: 'admin',
    status: 'invited',
    invited_at: expect.any(String) as string,
    joined_at: null,
  });
  const listed = await send('ann', 'GET', '/members');
  expect(listed.json).toMatchObject({
    data: [{ user_id: 'ann', status: 'active' }, member],
    meta: { total: 2, page: 1, per_page: 50, has_more: false },
  });
  expect(listed.text).not.toMatch(/token|hash/);
  expect(said(await send('bob', 'GET', ''))).toEqual([403, 'forbidden']);
  const accepted = await send('bob', 'POST', '/members/accept', { token });
  expect(accepted.status).toBe(200);
  expect(dataOf(accepted)).toEqual({
    ...member,
    user_id: 'bob',
    status: 'active',
    joined_at: expect.any(String) as string,
  });
  expect((await send('bob', 'GET', '/members')).status).toBe(200);
  expect(said(await send('bob', 'POST', '/members/accept', { token }))).toEqual([404, 'member_not_found']);
  const page = await send('ann', 'GET', '/members?limit=1&offset=1');
  expect(page.json).toMatchObject({ data: [{ user_id: 'bob' }], meta: { total: 2, page: 2, has_more: false } });
  const stored = (await (await one.log.bucket('orgs')).get(org))?.string() ?? '';
  expect(stored).toContain('bob');
  expect(stored).not.toContain(String(token));
});

test('an invitation is refused to another person, and to everybody after a day', async () => {
  const token = dataOf(await send('ann', 'POST', '/members', { email: 'bob@example.com', role: 'member' }))['token'];
  const accept = async (headers: Record<string, string | undefined>, given: unknown = token) =>
    said(await call(one, 'POST', `/orgs/${org}/members/accept`, { headers, body: { token: given } }));
  expect(await accept(await as('eve'))).toEqual([403, 'forbidden']);
  expect(await accept(await as('bob', null))).toEqual([403, 'forbidden']);
  expect(await accept(await as('bob'), 'made-up')).toEqual([404, 'member_not_found']);
  expect(await accept(await as('bob'), 7)).toEqual([422, 'invalid_request']);
  expect(await accept({ 'X-Org-Api-Key': KEY })).toEqual([403, 'forbidden']);
  expect(await accept({ 'X-Org-Api-Key': undefined, Authorization: `Bearer ${KEY}` })).toEqual([403, 'forbidden']);
  expect(
    said(await call(one, 'POST', '/orgs/org_none/members/accept', { headers: await as('bob'), body: { token } })),
  ).toEqual([404, 'member_not_found']);
  expect(await accept(await as('ann', 'bob@example.com'))).toEqual([409, 'conflict']);
  setClocksAhead(DAY_MS);
  expect(await accept(await as('bob'))).toEqual([410, 'expired']);
  const renewed = await send('ann', 'POST', '/members', { email: 'bob@example.com', role: 'member' });
  expect(await accept(await as('bob'))).toEqual([404, 'member_not_found']);
  expect(await accept(await as('bob'), dataOf(renewed)['token'])).toEqual([200, undefined]);
  expect(said(await send('ann', 'POST', '/members', { email: 'BOB@example.com', role: 'viewer' }))).toEqual([
    409,
    'conflict',
  ]);
});

test('an invitation goes up to the role of the inviting member', async () => {
  await join('adi', 'admin');
  const key = await call(one, 'POST', `/orgs/${org}/api-keys`, {
    headers: await as('adi'),
    body: { name: 'k', scopes: ['*'] },
  });
  const byKey = { 'X-Org-Api-Key': String(key.json?.['raw_key']), 'X-Org-Id': org };
  for (const headers of [await as('adi'), byKey]) {
    const inviteAs = async (role: string) =>
      (
        await call(one, 'POST', `/orgs/${org}/members`, {
          headers,
          body: { email: `${role}.${randomUUID()}@example.com`, role },
        })
      ).status;
    expect([await inviteAs('owner'), await inviteAs('admin'), await inviteAs('viewer')]).toEqual([403, 201, 201]);
  }
  expect((await send('ann', 'POST', '/members', { email: 'co@example.com', role: 'owner' })).status).toBe(201);
});

test.each([
  ['no address', { role: 'member' }, /^email: /],
  ['an address that is none', { email: 'x', role: 'member' }, /^email: /],
  ['several addresses', { email: 'a@example.com, b@example.com', role: 'member' }, /^email: /],
  ['an address with a line break', { email: 'a@example.com\r\nBcc: b@example.com', role: 'member' }, /^email: /],
  ['an unknown role', { email: 'x@example.com', role: 'boss' }, /^role: /],
  ['a field too many', { email: 'x@example.com', role: 'member', admin: true }, /^admin: /],
])('an invitation with %s is invalid_request and names the field', async (_what, body, detail) => {
  const answer = await send('ann', 'POST', '/members', body);
  expect([...said(answer), answer.json?.['detail']]).toEqual([
    422,
    'invalid_request',
    expect.stringMatching(detail) as string,
  ]);
});

test('concurrent invitations from both processes are all stored', async () => {
  const names = Array.from({ length: 40 }, (_, n) => `n${n}@example.com`);
  const sent = await Promise.all(
    names.map((email, n) => send('ann', 'POST', '/members', { email, role: 'viewer' }, n % 2 === 0 ? one : two)),
  );
  expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([201]));
  await eventually(
    async () =>
      (await send('ann', 'GET', '/members')).json?.['meta'] !== undefined && Object.keys(await rolesOf()).length === 41,
  );
});

test('an invitation shows no token in production', async () => {
  const production = await startTestApi({ natsUrl: nats.url, production: true });
  try {
    const invited = await send('ann', 'POST', '/members', { email: 'bob@example.com', role: 'owner' }, production);
    expect([invited.status, Object.keys(dataOf(invited))]).toEqual([
      201,
      expect.not.arrayContaining(['token']) as string[],
    ]);
    await join('cat', 'member');
    await eventually(async () => (await send('cat', 'GET', '', undefined, production)).status === 200);
    const transfer = await send('ann', 'POST', '/transfer', { new_owner_user_id: 'cat' }, production);
    expect([transfer.status, Object.keys(dataOf(transfer))]).toEqual([
      201,
      expect.not.arrayContaining(['token']) as string[],
    ]);
  } finally {
    await production.close();
  }
});
