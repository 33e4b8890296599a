// Invitations as functions of the organization's record: who may invite whom, and who may accept.
import { expect, test } from 'vitest';
import { type ErrorCode } from '../../../api/http/errors.ts';
import type { Scope } from '../../../schemas/records/api_key.ts';
import { acceptInvite, changeRole, invite, removeMember } from '../../../api/control/orgs/membership.ts';
import { ACCEPT_MS_MAX, MEMBERS_MAX, type MemberRole, type OrgRecord } from '../../../schemas/records/org.ts';
import { aKey, anInvitation, anOrg, AT, AT_ISO, caller, codeOf, person } from './an_org.ts';

test('an invited member waits for a day under a generated id', () => {
  const { org, member } = invite(anOrg(), anInvitation());
  expect(member).toEqual({
    user_id: 'usr_1',
    email: 'new@example.com',
    role: 'member',
    status: 'invited',
    invited_at: AT_ISO,
    joined_at: null,
    invite_token_hash: 'h1',
    invite_expires_at: '2026-03-05T05:06:07.000Z',
    invited_by: { user_id: 'ann', member_since: AT_ISO },
  });
  expect(org.members.at(-1)).toBe(member);
});

test.each<[MemberRole, MemberRole, ErrorCode | 'done']>([
  ['admin', 'owner', 'forbidden'],
  ['admin', 'admin', 'done'],
  ['admin', 'viewer', 'done'],
  ['owner', 'owner', 'done'],
])('an invitation by an %s to the role %s: %s', (by, role, code) => {
  expect(codeOf(() => invite(anOrg(), anInvitation({ by: caller(by === 'owner' ? 'ann' : 'bob', by), role })))).toBe(
    code,
  );
});

test.each<[string, readonly Scope[], MemberRole, ErrorCode | 'done']>([
  ['org:write alone', ['org:write'], 'admin', 'forbidden'],
  ['org:write alone', ['org:write'], 'member', 'forbidden'],
  ['org:write alone', ['org:write'], 'viewer', 'forbidden'],
  [
    'org:write and all that a viewer may',
    ['org:write', 'org:read', 'agents:read', 'references:read'],
    'viewer',
    'done',
  ],
  [
    'org:write and all that a viewer may',
    ['org:write', 'org:read', 'agents:read', 'references:read'],
    'member',
    'forbidden',
  ],
  ['every scope', ['*'], 'admin', 'done'],
  ['every scope', ['*'], 'owner', 'forbidden'],
])('an invitation by a key with %s (%j) to the role %s: %s', (_what, scopes, role, code) => {
  expect(codeOf(() => invite(anOrg(), anInvitation({ by: aKey(scopes), role })))).toBe(code);
});

test('a refused invitation names the role and the permissions that the caller lacks', () => {
  expect(() => invite(anOrg(), anInvitation({ by: aKey(['org:write']), role: 'viewer' }))).toThrow(
    'for the role viewer it lacks agents:read, references:read, org:read.',
  );
});

test('the inviting member has the role of the record, not the one that the request arrived with', () => {
  const demoted = changeRole(anOrg(), 'bob', 'member', AT).org;
  expect(codeOf(() => invite(demoted, anInvitation({ by: caller('bob', 'admin'), role: 'admin' })))).toBe('forbidden');
  const key = aKey(['*'], { user_id: 'bob', member_since: AT_ISO, role: 'admin' });
  expect(codeOf(() => invite(anOrg(), anInvitation({ by: key, role: 'admin' })))).toBe('done');
  expect(codeOf(() => invite(demoted, anInvitation({ by: key, role: 'viewer' })))).toBe('done');
  expect(codeOf(() => invite(demoted, anInvitation({ by: key, role: 'admin' })))).toBe('forbidden');
  expect(codeOf(() => invite(removeMember(anOrg(), 'bob', AT).org, anInvitation({ by: key, role: 'viewer' })))).toBe(
    'forbidden',
  );
});

test('an open invite ends when the member who sent it may no longer invite to its role', () => {
  const accept = (org: OrgRecord) =>
    codeOf(() => acceptInvite(org, { token_hash: 'h1', person: person('new'), now: AT }));
  const { org } = invite(anOrg(), anInvitation({ by: caller('bob', 'admin'), role: 'admin' }));
  expect(accept(org)).toBe('done');
  expect(accept(changeRole(org, 'bob', 'member', AT).org)).toBe('expired');
  expect(accept(removeMember(org, 'bob', AT).org)).toBe('expired');
  const vouched = changeRole(changeRole(org, 'usr_1', 'member', AT).org, 'usr_1', 'admin', AT).org;
  expect(accept(removeMember(vouched, 'bob', AT).org)).toBe('done');
  const byKey = invite(
    anOrg(),
    anInvitation({ by: aKey(['*'], { user_id: 'bob', member_since: AT_ISO, role: 'admin' }) }),
  ).org;
  expect([accept(byKey), accept(removeMember(byKey, 'bob', AT).org)]).toEqual(['done', 'expired']);
  expect(accept(invite(anOrg(), anInvitation({ by: aKey(['*']) })).org)).toBe('done');
});

test('an admin does not take down the invite of an owner', () => {
  const { org } = invite(anOrg(), anInvitation({ role: 'owner' }));
  expect(codeOf(() => invite(org, anInvitation({ by: caller('bob', 'admin'), role: 'viewer' })))).toBe('forbidden');
});

test('inviting an active member is a conflict, in any case of the address', () => {
  expect(codeOf(() => invite(anOrg(), anInvitation({ email: 'BOB@Example.com' })))).toBe('conflict');
});

test('inviting an invited member again replaces the token and keeps the id', () => {
  const first = invite(anOrg(), anInvitation());
  const second = invite(
    first.org,
    anInvitation({ email: 'New@example.com', user_id: 'usr_2', token_hash: 'h2', role: 'viewer' }),
  );
  expect(second.member).toMatchObject({ user_id: 'usr_1', role: 'viewer', invite_token_hash: 'h2' });
  expect(second.org.members).toHaveLength(4);
  const accept = (token_hash: string) =>
    codeOf(() => acceptInvite(second.org, { token_hash, person: { user_id: 'n', email: 'new@example.com' }, now: AT }));
  expect([accept('h1'), accept('h2')]).toEqual(['member_not_found', 'done']);
});

test('invitations stop at the maximum of members, and an open one can still be renewed', () => {
  const full = anOrg(
    Object.fromEntries(
      Array.from({ length: MEMBERS_MAX - 1 }, (_, n) => (n === 0 ? ['ann', 'owner'] : [`m${n}`, 'viewer'])),
    ),
  );
  const { org } = invite(full, anInvitation());
  expect(codeOf(() => invite(org, anInvitation({ email: 'more@example.com' })))).toBe('conflict');
  expect(codeOf(() => invite(org, anInvitation()))).toBe('done');
  expect(JSON.stringify(org).length).toBeLessThan(1024 * 1024);
});

test.each<[string, Partial<Parameters<typeof acceptInvite>[1]>, ErrorCode | 'done']>([
  ['in time', {}, 'done'],
  ['in another case of the address', { person: { user_id: 'new', email: 'NEW@example.com' } }, 'done'],
  ['in the last millisecond', { now: AT + ACCEPT_MS_MAX - 1 }, 'done'],
  ['a day later', { now: AT + ACCEPT_MS_MAX }, 'expired'],
  ['with another token', { token_hash: 'h2' }, 'member_not_found'],
  ['by another address', { person: { user_id: 'new', email: 'other@example.com' } }, 'forbidden'],
  ['by a token without an address', { person: { user_id: 'new', email: null } }, 'forbidden'],
  ['by a member', { person: { user_id: 'bob', email: 'new@example.com' } }, 'conflict'],
])(
  'an invitation is accepted in time, with its token and by its address, and refused otherwise: %s',
  (_what, over, code) => {
    const { org } = invite(anOrg(), anInvitation());
    expect(codeOf(() => acceptInvite(org, { token_hash: 'h1', person: person('new'), now: AT, ...over }))).toBe(code);
  },
);

test('an invitation is accepted once and makes the person a member under their own id', () => {
  const { org } = invite(anOrg(), anInvitation({ role: 'admin' }));
  const accepted = acceptInvite(org, { token_hash: 'h1', person: person('new'), now: AT + 1 });
  expect(accepted.invited_id).toBe('usr_1');
  expect(accepted.member).toMatchObject({
    user_id: 'new',
    role: 'admin',
    status: 'active',
    joined_at: new Date(AT + 1).toISOString(),
  });
  expect(codeOf(() => acceptInvite(accepted.org, { token_hash: 'h1', person: person('other'), now: AT }))).toBe(
    'member_not_found',
  );
});
