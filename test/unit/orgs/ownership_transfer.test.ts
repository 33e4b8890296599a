// Transfers of ownership as functions of the organization's record: who may ask for one, who may accept, and when one ends.
import { expect, test } from 'vitest';
import { type ErrorCode } from '../../../api/http/errors.ts';
import { changeRole, invite, removeMember, replaceOwner } from '../../../api/control/orgs/membership.ts';
import {
  acceptTransfer,
  requestTransfer,
  transferStatus,
  withdrawTransfer,
} from '../../../api/control/orgs/ownership.ts';
import { ACCEPT_MS_MAX, type OrgRecord, ownerOf } from '../../../schemas/records/org.ts';
import { anInvitation, anOrg, AT, codeOf, person, rolesOf } from './an_org.ts';

const asked = (org = anOrg()) =>
  requestTransfer(org, {
    transfer_id: 'tfr_1',
    from_user_id: 'ann',
    new_owner_user_id: 'bob',
    token_hash: 't1',
    now: AT,
  });

test.each<[string, string, ErrorCode | 'done']>([
  ['a member', 'cat', 'done'],
  ['the owner', 'ann', 'invalid_request'],
  ['nobody', 'x', 'member_not_found'],
])('ownership can be transferred to another member only: to %s', (_what, new_owner_user_id, code) => {
  const request = { transfer_id: 'tfr_1', from_user_id: 'ann', new_owner_user_id, token_hash: 't1', now: AT };
  expect(codeOf(() => requestTransfer(anOrg(), request))).toBe(code);
});

test('ownership cannot be transferred to an invited member', () => {
  const { org } = invite(anOrg(), anInvitation());
  const request = {
    transfer_id: 'tfr_1',
    from_user_id: 'ann',
    new_owner_user_id: 'usr_1',
    token_hash: 't1',
    now: AT,
  };
  expect(codeOf(() => requestTransfer(org, request))).toBe('member_not_found');
});

test('one transfer of ownership is pending at a time, and a withdrawn or expired one allows another', () => {
  const { org } = asked();
  const again = (base: OrgRecord, now: number) =>
    codeOf(() =>
      requestTransfer(base, {
        transfer_id: 'tfr_2',
        from_user_id: 'ann',
        new_owner_user_id: 'cat',
        token_hash: 't2',
        now,
      }),
    );
  expect([again(org, AT + ACCEPT_MS_MAX - 1), again(org, AT + ACCEPT_MS_MAX)]).toEqual(['conflict', 'done']);
  expect(again(withdrawTransfer(org, AT).org, AT)).toBe('done');
  expect(codeOf(() => withdrawTransfer(withdrawTransfer(org, AT).org, AT))).toBe('conflict');
});

test.each<[string, Partial<Parameters<typeof acceptTransfer>[1]>, ErrorCode | 'done']>([
  ['in the last millisecond', { now: AT + ACCEPT_MS_MAX - 1 }, 'done'],
  ['a day later', { now: AT + ACCEPT_MS_MAX }, 'expired'],
  ['by another member', { user_id: 'cat' }, 'forbidden'],
  ['by a stranger', { user_id: 'x' }, 'forbidden'],
  ['with another token', { token_hash: 't2' }, 'invalid_request'],
])(
  'a transfer of ownership is accepted in time, with its token and by the new owner, and refused otherwise: %s',
  (_what, over, code) => {
    expect(codeOf(() => acceptTransfer(asked().org, { token_hash: 't1', user_id: 'bob', now: AT, ...over }))).toBe(
      code,
    );
  },
);

test('a transfer of ownership changes both roles at once, and only once', () => {
  const { org, transfer } = acceptTransfer(asked().org, { token_hash: 't1', user_id: 'bob', now: AT + 5 });
  expect(rolesOf(org)).toEqual({ bob: 'owner', ann: 'admin', cat: 'viewer' });
  expect(ownerOf(org).user_id).toBe('bob');
  expect(transfer).toMatchObject({ status: 'effective', ended_at: new Date(AT + 5).toISOString() });
  expect(codeOf(() => acceptTransfer(org, { token_hash: 't1', user_id: 'bob', now: AT }))).toBe('invalid_request');
});

test('a transfer of ownership ends when one of the two can no longer take part', () => {
  const two = asked(anOrg({ ann: 'owner', bob: 'admin', dan: 'owner' })).org;
  for (const changed of [
    removeMember(two, 'bob', AT).org,
    removeMember(two, 'ann', AT).org,
    changeRole(two, 'ann', 'admin', AT).org,
    replaceOwner(two, person('eve'), AT),
  ]) {
    expect(changed.transfer?.status).toBe('cancelled');
    expect(codeOf(() => acceptTransfer(changed, { token_hash: 't1', user_id: 'bob', now: AT }))).not.toBe('done');
  }
  expect(changeRole(two, 'bob', 'viewer', AT).org.transfer?.status).toBe('pending');
});

test('a transfer of ownership expires by the clock', () => {
  const { transfer } = asked();
  expect([transferStatus(transfer, AT + ACCEPT_MS_MAX - 1), transferStatus(transfer, AT + ACCEPT_MS_MAX)]).toEqual([
    'pending',
    'expired',
  ]);
});
