// Transfers of ownership over two API processes: from the request to its acceptance, expiry or
// withdrawal.
import { expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { call } from './an_api.ts';
import { DAY_MS, one, two, send, dataOf, said, join, rolesOf, setClocksAhead } from './members_of_an_org.ts';

test('an owner requests a transfer of ownership, the new owner accepts it, and the former owner becomes an admin', async () => {
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
  // Both processes receive the same acceptance; only one takes effect.
  const both = await Promise.all([accept('bob', token, one), accept('bob', token, two)]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 422]);
  expect(both.find(({ status }) => status === 200)?.json?.['data']).toEqual({ ...pending, status: 'effective' });
  await eventually(async () => JSON.stringify(await rolesOf()) === JSON.stringify({ bob: 'owner', ann: 'admin' }));
  expect(dataOf(await send('ann', 'GET', ''))).toMatchObject({ owner: { user_id: 'bob', email: 'bob@example.com' } });
  expect(said(await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' }))).toEqual([403, 'forbidden']);
});

test('a transfer of ownership expires after a day and can be requested again', async () => {
  await join('bob', 'admin');
  const { token } = dataOf(await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' }));
  setClocksAhead(DAY_MS);
  expect(dataOf(await send('ann', 'GET', '/transfer'))).toMatchObject({ status: 'expired' });
  expect(said(await send('bob', 'POST', '/transfer/accept', { token }))).toEqual([410, 'expired']);
  expect((await send('ann', 'POST', '/transfer', { new_owner_user_id: 'bob' })).status).toBe(201);
});

test('a transfer of ownership can be withdrawn, and ends with the membership of the new owner', async () => {
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

test('only an owner can request a transfer of ownership, only to an active member, and never by key', async () => {
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
