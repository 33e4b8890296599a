// Members and the ownership of an org over two API processes on one nats-server, as persons with tokens: who gets in, with
// which role, how fast somebody is out, and that an owner stays whoever writes at once.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AUDIT_STREAM } from '../../../schemas/streams.ts';
import { type AuditEntry, auditEntryCodec, FINGERPRINT_HEADER } from '../../../schemas/codec.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, KEY, startTestApi, type TestApi, tokenOf } from './an_api.ts';

const DAY_MS = 24 * 3_600_000;
let nats: TestNats;
let one: TestApi;
let two: TestApi;
/** What the clocks of both are ahead. */
let aheadMs = 0;
let org = '';
let serial = 0;

beforeAll(async () => {
  nats = await startTestNats();
  const now = () => Date.now() + aheadMs;
  one = await startTestApi({ natsUrl: nats.url, now });
  two = await startTestApi({ natsUrl: nats.url, now });
});

afterAll(async () => {
  await one.close();
  await two.close();
  await nats.remove();
});

const operator = { Authorization: `Bearer ${ADMIN_TOKEN}` };

/** A person whose sub is the name, in the org of the test. */
async function as(
  name: string,
  email: string | null = `${name}@example.com`,
  of = org,
): Promise<Record<string, string | undefined>> {
  const exp = Math.floor((Date.now() + aheadMs) / 1000) + 3600;
  return asUser(await tokenOf(email === null ? { sub: name, exp } : { sub: name, email, exp }), of);
}

async function send(name: string, method: string, path: string, body?: unknown, api: TestApi = one): Promise<Answer> {
  return call(api, method, `/orgs/${org}${path}`, { headers: await as(name), ...(body === undefined ? {} : { body }) });
}

const dataOf = (answer: Answer) => answer.json?.['data'] as Record<string, unknown>;
const said = (answer: Answer) => [answer.status, answer.json?.['code']];

/** Invites and accepts. */
async function join(name: string, role: string): Promise<void> {
  const invited = await send('ann', 'POST', '/members', { email: `${name}@example.com`, role });
  expect(invited.status).toBe(201);
  expect((await send(name, 'POST', '/members/accept', { token: dataOf(invited)['token'] })).status).toBe(200);
}

const rolesOf = async () =>
  Object.fromEntries(
    ((await send('ann', 'GET', '/members')).json?.['data'] as { user_id: string; role: string }[]).map(
      ({ user_id, role }) => [user_id, role],
    ),
  );

beforeEach(async () => {
  aheadMs = 0;
  org = `org_m${String(++serial)}`;
  const made = await call(one, 'POST', '/admin/orgs', {
    body: { org_id: org, name: 'Acme', plan_name: 'enterprise', owner: { user_id: 'ann', email: 'ann@example.com' } },
    headers: operator,
  });
  expect(made.status).toBe(201);
  await eventually(async () => (await send('ann', 'GET', '', undefined, two)).status === 200, {
    what: 'the org at the other process',
  });
});

describe('a person', () => {
  test('is what the member record says, in the org that is named, and nothing in others', async () => {
    await join('vic', 'viewer');
    expect(said(await send('vic', 'GET', '/members'))).toEqual([200, undefined]);
    expect(said(await send('vic', 'POST', '/members', { email: 'x@example.com', role: 'viewer' }))).toEqual([
      403,
      'forbidden',
    ]);
    expect(said(await send('eve', 'GET', ''))).toEqual([403, 'forbidden']);
    expect(said(await call(one, 'GET', '/orgs/org_test', { headers: await as('ann', undefined, 'org_test') }))).toEqual(
      [403, 'forbidden'],
    );
    expect(said(await call(one, 'GET', '/orgs/org_none', { headers: await as('ann', undefined, 'org_none') }))).toEqual(
      [403, 'forbidden'],
    );
  });

  test('sees plan and overage as admin and owner only; a key with org:read sees them', async () => {
    await join('vic', 'viewer');
    await join('mel', 'member');
    await join('adi', 'admin');
    for (const [name, sees] of [
      ['ann', true],
      ['adi', true],
      ['mel', false],
      ['vic', false],
    ] as const) {
      const seen = dataOf(await send(name, 'GET', ''));
      expect([name, 'plan_name' in seen, 'rate_limits' in seen, 'overage_budget_usd' in seen]).toEqual([
        name,
        sees,
        sees,
        sees,
      ]);
      expect(seen).toMatchObject({ org_id: org, name: 'Acme', owner: { user_id: 'ann', email: 'ann@example.com' } });
      expect(Object.keys(seen)).not.toContain('members');
    }
    expect(dataOf(await call(one, 'GET', '/orgs/org_test', { headers: { 'X-Org-Api-Key': KEY } }))).toHaveProperty(
      'plan_name',
      'enterprise',
    );
  });
});

describe('invites', () => {
  test('are listed, accepted under the sub of the token, and never show a token again', async () => {
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

  test('are refused to whom they are not for, and after a day', async () => {
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
    aheadMs = DAY_MS;
    expect(await accept(await as('bob'))).toEqual([410, 'expired']);
    const renewed = await send('ann', 'POST', '/members', { email: 'bob@example.com', role: 'member' });
    expect(await accept(await as('bob'))).toEqual([404, 'member_not_found']);
    expect(await accept(await as('bob'), dataOf(renewed)['token'])).toEqual([200, undefined]);
    expect(said(await send('ann', 'POST', '/members', { email: 'BOB@example.com', role: 'viewer' }))).toEqual([
      409,
      'conflict',
    ]);
  });

  test('go up to the role of whoever invites', async () => {
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
            body: { email: `${role}.${String(++serial)}@example.com`, role },
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
  ])('with %s are invalid_request naming the field', async (_what, body, detail) => {
    const answer = await send('ann', 'POST', '/members', body);
    expect([...said(answer), answer.json?.['detail']]).toEqual([
      422,
      'invalid_request',
      expect.stringMatching(detail) as string,
    ]);
  });

  test('many at once, from both processes, are all there', async () => {
    const names = Array.from({ length: 40 }, (_, n) => `n${String(n)}@example.com`);
    const sent = await Promise.all(
      names.map((email, n) => send('ann', 'POST', '/members', { email, role: 'viewer' }, n % 2 === 0 ? one : two)),
    );
    expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([201]));
    await eventually(
      async () =>
        (await send('ann', 'GET', '/members')).json?.['meta'] !== undefined &&
        Object.keys(await rolesOf()).length === 41,
    );
  });

  test('show no token in production', async () => {
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
});

describe('roles and leaving', () => {
  test('an owner changes roles, an admin does not; a new role holds at once', async () => {
    await join('adi', 'admin');
    await join('vic', 'viewer');
    expect(said(await send('adi', 'PATCH', '/members/vic', { role: 'member' }))).toEqual([403, 'forbidden']);
    const changed = await send('ann', 'PATCH', '/members/vic', { role: 'admin' });
    expect([changed.status, dataOf(changed)['role']]).toEqual([200, 'admin']);
    expect((await send('vic', 'POST', '/members', { email: 'x@example.com', role: 'viewer' })).status).toBe(201);
    expect(said(await send('ann', 'PATCH', '/members/nobody', { role: 'admin' }))).toEqual([404, 'member_not_found']);
    expect(said(await send('ann', 'PATCH', '/members/vic', { role: 'boss' }))).toEqual([422, 'invalid_request']);
    const key = { 'X-Org-Api-Key': KEY };
    expect(
      said(await call(one, 'PATCH', '/orgs/org_test/members/user_local', { headers: key, body: { role: 'admin' } })),
    ).toEqual([403, 'forbidden']);
    expect(said(await call(one, 'DELETE', '/orgs/org_test/members/user_local', { headers: key }))).toEqual([
      403,
      'forbidden',
    ]);
  });

  test("a removed member's token is refused by every process", async () => {
    await join('bob', 'admin');
    await eventually(async () => (await send('bob', 'GET', '', undefined, two)).status === 200);
    expect(said(await send('bob', 'DELETE', '/members/ann'))).toEqual([403, 'forbidden']);
    const removed = await send('ann', 'DELETE', '/members/bob');
    expect([removed.status, dataOf(removed)]).toEqual([200, { user_id: 'bob', deleted: true, api_keys: [] }]);
    expect(said(await send('bob', 'GET', ''))).toEqual([403, 'forbidden']);
    await eventually(async () => (await send('bob', 'GET', '', undefined, two)).status === 403, {
      what: 'the refusal elsewhere',
    });
    expect(said(await send('ann', 'DELETE', '/members/bob'))).toEqual([404, 'member_not_found']);
  });

  test('an invite is withdrawn', async () => {
    const { user_id, token } = dataOf(
      await send('ann', 'POST', '/members', { email: 'bob@example.com', role: 'admin' }),
    );
    expect((await send('ann', 'DELETE', `/members/${String(user_id)}`)).status).toBe(200);
    expect(said(await send('bob', 'POST', '/members/accept', { token }))).toEqual([404, 'member_not_found']);
  });

  test('the last owner can neither leave nor step down', async () => {
    expect(said(await send('ann', 'DELETE', '/members/ann'))).toEqual([409, 'conflict']);
    expect(said(await send('ann', 'PATCH', '/members/ann', { role: 'admin' }))).toEqual([409, 'conflict']);
    await join('bob', 'owner');
    expect((await send('ann', 'PATCH', '/members/ann', { role: 'admin' })).status).toBe(200);
    expect(said(await send('bob', 'DELETE', '/members/bob'))).toEqual([409, 'conflict']);
  });

  test('two owners who remove each other at once, at two processes, leave exactly one', async () => {
    for (let round = 0; round < 15; round++) {
      const who = `bob${String(round)}`;
      await call(one, 'PATCH', `/admin/orgs/${org}`, {
        headers: operator,
        body: { owner: { user_id: 'ann', email: 'ann@example.com' } },
      });
      await join(who, 'owner');
      await eventually(async () => (await send(who, 'GET', '', undefined, two)).status === 200);
      const removes = round % 2 === 0;
      const [first, second] = await Promise.all([
        removes
          ? send('ann', 'DELETE', `/members/${who}`, undefined, one)
          : send('ann', 'PATCH', '/members/ann', { role: 'admin' }, one),
        removes
          ? send(who, 'DELETE', '/members/ann', undefined, two)
          : send(who, 'PATCH', `/members/${who}`, { role: 'admin' }, two),
      ]);
      expect([first.status, second.status].filter((status) => status === 200)).toHaveLength(1);
      // The one who lost had become no owner, no member, or the last owner.
      expect([403, 404, 409]).toContain([first.status, second.status].find((status) => status !== 200));
      const record = JSON.parse((await (await one.log.bucket('orgs')).get(org))?.string() ?? '') as {
        members: { role: string }[];
      };
      expect(record.members.filter(({ role }) => role === 'owner')).toHaveLength(1);
    }
  });

  test('the operator puts another owner in the place of the one there is', async () => {
    await join('bob', 'viewer');
    const patch = (user_id: string) =>
      call(one, 'PATCH', `/admin/orgs/${org}`, {
        headers: operator,
        body: { owner: { user_id, email: `${user_id}@example.com` } },
      });
    const changed = await patch('eve');
    expect(dataOf(changed)).toMatchObject({
      owner: { user_id: 'eve', email: 'eve@example.com' },
      org: { owner: { user_id: 'eve' } },
    });
    expect(changed.text).not.toMatch(/hash|members/);
    expect(await rolesOf()).toEqual({ eve: 'owner', ann: 'admin', bob: 'viewer' });
    await patch('bob');
    expect(await rolesOf()).toEqual({ bob: 'owner', eve: 'admin', ann: 'admin' });
  });
});

describe('a transfer of ownership', () => {
  test('is asked for by an owner, accepted by the new one, and makes the former one an admin', async () => {
    await join('bob', 'member');
    expect((await send('bob', 'GET', '/transfer')).json?.['data']).toBeNull();
    const asked = await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' });
    expect(asked.status).toBe(201);
    const { token, ...pending } = dataOf(asked);
    expect(pending).toEqual({
      transfer_id: expect.stringMatching(/^tfr_/) as string,
      status: 'pending',
      new_owner_user_id: 'bob',
      expires_at: expect.any(String) as string,
    });
    expect(dataOf(await send('bob', 'GET', '/transfer'))).toEqual(pending);
    expect(said(await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' }))).toEqual([409, 'conflict']);
    const accept = (name: string, given: unknown, api = one) =>
      send(name, 'POST', '/transfer/accept', { token: given }, api);
    const made_up = await accept('bob', 'made-up');
    expect([...said(made_up), made_up.json?.['detail']]).toEqual([
      422,
      'invalid_request',
      expect.stringMatching(/^token: /) as string,
    ]);
    expect(said(await accept('ann', token))).toEqual([403, 'forbidden']);
    expect(said(await accept('eve', token))).toEqual([403, 'forbidden']);
    expect(await rolesOf()).toEqual({ ann: 'owner', bob: 'member' });
    // The same acceptance at both processes: one takes effect.
    const both = await Promise.all([accept('bob', token, one), accept('bob', token, two)]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 422]);
    expect(both.find(({ status }) => status === 200)?.json?.['data']).toEqual({ ...pending, status: 'effective' });
    await eventually(async () => JSON.stringify(await rolesOf()) === JSON.stringify({ bob: 'owner', ann: 'admin' }));
    expect(dataOf(await send('ann', 'GET', ''))).toMatchObject({ owner: { user_id: 'bob', email: 'bob@example.com' } });
    expect(said(await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' }))).toEqual([403, 'forbidden']);
  });

  test('expires after a day, and can be asked for anew', async () => {
    await join('bob', 'admin');
    const { token } = dataOf(await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' }));
    aheadMs = DAY_MS;
    expect(dataOf(await send('ann', 'GET', '/transfer'))).toMatchObject({ status: 'expired' });
    expect(said(await send('bob', 'POST', '/transfer/accept', { token }))).toEqual([410, 'expired']);
    expect((await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' })).status).toBe(201);
  });

  test('is withdrawn, and ends with the membership of the new owner', async () => {
    await join('bob', 'admin');
    const asked = dataOf(await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' }));
    const withdrawn = await send('ann', 'DELETE', '/transfer');
    expect([withdrawn.status, dataOf(withdrawn)]).toEqual([200, { transfer_id: asked['transfer_id'], deleted: true }]);
    expect(said(await send('bob', 'POST', '/transfer/accept', { token: asked['token'] }))).toEqual([
      422,
      'invalid_request',
    ]);
    expect(said(await send('ann', 'DELETE', '/transfer'))).toEqual([409, 'conflict']);
    await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' });
    await send('ann', 'DELETE', '/members/bob');
    expect(dataOf(await send('ann', 'GET', '/transfer'))).toMatchObject({ status: 'cancelled' });
  });

  test('is for owners, to active members, and never by key', async () => {
    await join('adi', 'admin');
    const { user_id } = dataOf(await send('ann', 'POST', '/members', { email: 'new@example.com', role: 'member' }));
    const ask = async (name: string, new_owner_user_id: unknown) =>
      said(await send(name, 'POST', '/transfer', { new_owner_user_id }));
    expect(await ask('adi', 'ann')).toEqual([403, 'forbidden']);
    expect(await ask('ann', 'ann')).toEqual([422, 'invalid_request']);
    expect(await ask('ann', 'nobody')).toEqual([404, 'member_not_found']);
    expect(await ask('ann', user_id)).toEqual([404, 'member_not_found']);
    expect(await ask('ann', 7)).toEqual([422, 'invalid_request']);
    const byKey = await call(one, 'POST', '/orgs/org_test/transfer', { body: { new_owner_user_id: 'x' } });
    expect(said(byKey)).toEqual([403, 'forbidden']);
  });
});

/** Mutations of the test's org that took effect, as they are on their way to the audit log. */
async function auditOf(): Promise<Pick<AuditEntry, 'action' | 'actor_id' | 'target_type' | 'target_id' | 'changes'>[]> {
  const { state } = await one.log.jsm.streams.info(AUDIT_STREAM);
  const found = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await one.log.jsm.streams.getMessage(AUDIT_STREAM, { seq });
    if (message === null) continue;
    const entry = auditEntryCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER));
    if (entry.org_id === org && entry.phase === 'done' && entry.actor_type === 'user') found.push(entry);
  }
  return found;
}

test('every mutation is on its way to the audit log, with what changed and no token', async () => {
  const { user_id, token } = dataOf(
    await send('ann', 'POST', '/members', { email: 'bob@example.com', role: 'member' }),
  );
  await send('bob', 'POST', '/members/accept', { token });
  await send('ann', 'PATCH', '/members/bob', { role: 'admin' });
  await send('ann', 'PATCH', '/members/bob', { role: 'admin' });
  await send('ann', 'PATCH', '/members/ann', { role: 'viewer' });
  const asked = dataOf(await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' }));
  await send('bob', 'POST', '/transfer/accept', { token: asked['token'] });
  await send('bob', 'PUT', '/policy', { max_prompt_tokens: 100 });
  await send('bob', 'DELETE', '/members/ann');
  await eventually(async () => (await auditOf()).length >= 7, { what: 'the records' });
  const records = await auditOf();
  expect(
    records.map(({ action, actor_id, target_type, target_id, changes }) => [
      action,
      actor_id,
      target_type,
      target_id,
      JSON.parse(changes) as unknown,
    ]),
  ).toEqual([
    ['member.invite', 'ann', 'member', user_id, { email: 'bob@example.com', role: 'member' }],
    [
      'member.accept',
      'bob',
      'member',
      'bob',
      { user_id: { from: user_id, to: 'bob' }, status: { from: 'invited', to: 'active' }, role: 'member' },
    ],
    ['member.role_change', 'ann', 'member', 'bob', { role: { from: 'member', to: 'admin' } }],
    ['transfer.request', 'ann', 'transfer', asked['transfer_id'], { new_owner_user_id: 'bob' }],
    ['transfer.accept', 'bob', 'transfer', asked['transfer_id'], { owner: { from: 'ann', to: 'bob' } }],
    ['policy.update', 'bob', 'policy', org, { max_prompt_tokens: { from: null, to: 100 } }],
    ['member.remove', 'bob', 'member', 'ann', { email: 'ann@example.com', role: 'admin', status: 'active' }],
  ]);
  expect(JSON.stringify(records)).not.toContain(String(token));
});

test('members, invites and a pending transfer outlive a kill of NATS and new processes', async () => {
  await join('bob', 'admin');
  const { token } = dataOf(await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' }));
  const invite = dataOf(await send('ann', 'POST', '/members', { email: 'cat@example.com', role: 'viewer' }));
  await nats.kill();
  await nats.start();
  const fresh = await startTestApi({ natsUrl: nats.url });
  try {
    expect((await send('cat', 'POST', '/members/accept', { token: invite['token'] }, fresh)).status).toBe(200);
    expect((await send('bob', 'POST', '/transfer/accept', { token }, fresh)).status).toBe(200);
    await eventually(
      async () => JSON.stringify(await rolesOf()) === JSON.stringify({ bob: 'owner', ann: 'admin', cat: 'viewer' }),
      {
        what: 'the same at a process that was there before',
      },
    );
  } finally {
    await fresh.close();
  }
});
