// Members of an organization over two API processes: who is admitted and with which role, how fast
// a removed member loses access, and that an owner always remains, even under concurrent writes.
import { expect, test } from 'vitest';
import { AUDIT_STREAM } from '../../../schemas/streams.ts';
import { type AuditEntry, auditEntryCodec, FINGERPRINT_HEADER } from '../../../schemas/codec.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, startTestApi } from './an_api.ts';
import { nats, one, two, org, operator, as, send, dataOf, said, join, rolesOf } from './members_of_an_org.ts';

test('a person has the role of their record in the named organization, and none in others', async () => {
  await join('vic', 'viewer');
  expect(said(await send('vic', 'GET', '/members'))).toEqual([200, undefined]);
  expect(said(await send('vic', 'POST', '/members', { email: 'x@example.com', role: 'viewer' }))).toEqual([
    403,
    'forbidden',
  ]);
  expect(said(await send('eve', 'GET', ''))).toEqual([403, 'forbidden']);
  expect(said(await call(one, 'GET', '/orgs/org_test', { headers: await as('ann', undefined, 'org_test') }))).toEqual([
    403,
    'forbidden',
  ]);
  expect(said(await call(one, 'GET', '/orgs/org_none', { headers: await as('ann', undefined, 'org_none') }))).toEqual([
    403,
    'forbidden',
  ]);
});

test('plan and overage are shown to admins, owners and keys with org:read only', async () => {
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

test('an owner changes roles and an admin cannot, and a new role is in force at once', async () => {
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

test('every process refuses the token of a removed member', async () => {
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

test('a withdrawn invitation cannot be accepted', async () => {
  const { user_id, token } = dataOf(await send('ann', 'POST', '/members', { email: 'bob@example.com', role: 'admin' }));
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
    const who = `bob${round}`;
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
    // The caller whose request failed was by then no owner, no member, or the last owner.
    expect([403, 404, 409]).toContain([first.status, second.status].find((status) => status !== 200));
    const record = JSON.parse((await (await one.log.bucket('orgs')).get(org))?.string() ?? '') as {
      members: { role: string }[];
    };
    expect(record.members.filter(({ role }) => role === 'owner')).toHaveLength(1);
  }
});

test('the operator replaces the owner', async () => {
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

/** Returns the completed mutations of the test's organization that are queued for the audit log. */
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

test('every mutation of members is sent to the audit log, with what changed and without tokens', async () => {
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

test('members, invitations and a pending transfer outlive a kill of NATS and of the processes', async () => {
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
