// Rules over members and ownership, as functions of the record: what is refused, what changes, and that an owner stays.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KeyMaker, OrgCredential } from '../../../api/http/credential.ts';
import { ApiError, type ErrorCode } from '../../../api/http/errors.ts';
import type { Scope } from '../../../schemas/records/api_key.ts';
import {
  acceptInvite,
  changeRole,
  type Invitation,
  invite,
  removeMember,
  replaceOwner,
} from '../../../api/control/orgs/membership.ts';
import {
  acceptTransfer,
  requestTransfer,
  transferStatus,
  withdrawTransfer,
} from '../../../api/control/orgs/ownership.ts';
import {
  ACCEPT_MS_MAX,
  activeMember,
  isActiveOwner,
  MEMBERS_MAX,
  type MemberRole,
  type OrgRecord,
  ownerOf,
  parseOrg,
} from '../../../schemas/records/org.ts';

const AT = Date.parse('2026-03-04T05:06:07.000Z');
const AT_ISO = new Date(AT).toISOString();
const person = (name: string) => ({ user_id: name, email: `${name}@example.com` });

function anOrg(members: Record<string, MemberRole> = { ann: 'owner', bob: 'admin', cat: 'viewer' }): OrgRecord {
  return {
    org_id: 'org_a',
    name: 'A',
    plan_name: 'pro',
    overage_budget_usd: null,
    rate_limits: null,
    created_at: AT_ISO,
    updated_at: AT_ISO,
    members: Object.entries(members).map(([name, role]) => activeMember(person(name), role, AT_ISO)),
    transfer: null,
  };
}

/** A person; what the record says of their role counts, not what they had when they called. */
const caller = (user_id: string, role: MemberRole): OrgCredential => ({
  kind: 'user',
  org_id: 'org_a',
  user_id,
  email: null,
  role,
});
const aKey = (scopes: readonly Scope[], maker?: KeyMaker): OrgCredential => ({
  kind: 'api_key',
  org_id: 'org_a',
  key_id: 'ak_1',
  scopes: new Set(scopes),
  ...(maker === undefined ? {} : { maker }),
});

const anInvitation = (over: Partial<Invitation> = {}): Invitation => ({
  email: 'new@example.com',
  role: 'member',
  by: caller('ann', 'owner'),
  user_id: 'usr_1',
  token_hash: 'h1',
  now: AT,
  ...over,
});

function codeOf(attempt: () => unknown): ErrorCode | 'done' {
  try {
    attempt();
    return 'done';
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}

const rolesOf = (org: OrgRecord) => Object.fromEntries(org.members.map(({ user_id, role }) => [user_id, role]));

describe('invites', () => {
  test('an invited member waits for a day under a made-up id', () => {
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
  ])('by %s as %s: %s', (by, role, code) => {
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
  ])('a key with %s (%j) that invites to %s gets %s', (_what, scopes, role, code) => {
    expect(codeOf(() => invite(anOrg(), anInvitation({ by: aKey(scopes), role })))).toBe(code);
  });

  test('a refusal names the role and permissions that are lacking', () => {
    expect(() => invite(anOrg(), anInvitation({ by: aKey(['org:write']), role: 'viewer' }))).toThrow(
      'for the role viewer it lacks agents:read, references:read, org:read.',
    );
  });

  test('the role in the record decides, not the one that the caller had when the request came in', () => {
    const demoted = changeRole(anOrg(), 'bob', 'member', AT).org;
    expect(codeOf(() => invite(demoted, anInvitation({ by: caller('bob', 'admin'), role: 'admin' })))).toBe(
      'forbidden',
    );
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

  test('of an active member is a conflict, whatever the case of the address', () => {
    expect(codeOf(() => invite(anOrg(), anInvitation({ email: 'BOB@Example.com' })))).toBe('conflict');
  });

  test('again: the old token is void, the id stays', () => {
    const first = invite(anOrg(), anInvitation());
    const second = invite(
      first.org,
      anInvitation({ email: 'New@example.com', user_id: 'usr_2', token_hash: 'h2', role: 'viewer' }),
    );
    expect(second.member).toMatchObject({ user_id: 'usr_1', role: 'viewer', invite_token_hash: 'h2' });
    expect(second.org.members).toHaveLength(4);
    const accept = (token_hash: string) =>
      codeOf(() =>
        acceptInvite(second.org, { token_hash, person: { user_id: 'n', email: 'new@example.com' }, now: AT }),
      );
    expect([accept('h1'), accept('h2')]).toEqual(['member_not_found', 'done']);
  });

  test('stop at the bound; one that is out can still be renewed', () => {
    const full = anOrg(
      Object.fromEntries(
        Array.from({ length: MEMBERS_MAX - 1 }, (_, n) => (n === 0 ? ['ann', 'owner'] : [`m${String(n)}`, 'viewer'])),
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
  ])('are accepted %s', (_what, over, code) => {
    const { org } = invite(anOrg(), anInvitation());
    expect(codeOf(() => acceptInvite(org, { token_hash: 'h1', person: person('new'), now: AT, ...over }))).toBe(code);
  });

  test('open once, and make the person a member under their own id', () => {
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
});

describe('roles and leaving', () => {
  test('the last owner is neither removed nor demoted; one of two is', () => {
    const one = anOrg();
    expect([codeOf(() => removeMember(one, 'ann', AT)), codeOf(() => changeRole(one, 'ann', 'admin', AT))]).toEqual([
      'conflict',
      'conflict',
    ]);
    const two = anOrg({ ann: 'owner', bob: 'owner' });
    expect(rolesOf(changeRole(two, 'ann', 'viewer', AT).org)).toEqual({ ann: 'viewer', bob: 'owner' });
    const left = removeMember(two, 'bob', AT).org;
    expect(codeOf(() => removeMember(left, 'ann', AT))).toBe('conflict');
  });

  test('an invited owner does not count', () => {
    const { org } = invite(anOrg(), anInvitation({ role: 'owner' }));
    expect(codeOf(() => removeMember(org, 'ann', AT))).toBe('conflict');
    expect(rolesOf(removeMember(org, 'usr_1', AT).org)).toEqual(rolesOf(anOrg()));
  });

  test('the same role changes nothing', () => {
    const org = anOrg();
    expect(changeRole(org, 'ann', 'owner', AT)).toMatchObject({ from: 'owner' });
    expect(changeRole(org, 'ann', 'owner', AT).org).toBe(org);
  });

  test('an unknown member is not found', () => {
    expect([codeOf(() => removeMember(anOrg(), 'x', AT)), codeOf(() => changeRole(anOrg(), 'x', 'owner', AT))]).toEqual(
      ['member_not_found', 'member_not_found'],
    );
  });

  test('whatever is tried in whatever order, an active owner stays, and no user is there twice', () => {
    const name = fc.constantFrom('ann', 'bob', 'cat', 'new');
    const role = fc.constantFrom<MemberRole>('viewer', 'member', 'admin', 'owner');
    const step = fc.oneof(
      fc.record({ kind: fc.constant('remove' as const), name }),
      fc.record({ kind: fc.constant('role' as const), name, role }),
      fc.record({ kind: fc.constant('invite' as const), name, role }),
      fc.record({ kind: fc.constant('accept' as const), name }),
      fc.record({ kind: fc.constant('transfer' as const), name, to: name }),
      fc.record({ kind: fc.constant('take' as const), name }),
      fc.record({ kind: fc.constant('replace' as const), name }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let org = anOrg();
        for (const [index, at] of steps.entries()) {
          const now = AT + index;
          try {
            switch (at.kind) {
              case 'remove':
                org = removeMember(org, at.name, now).org;
                break;
              case 'role':
                org = changeRole(org, at.name, at.role, now).org;
                break;
              case 'invite':
                org = invite(
                  org,
                  anInvitation({
                    email: `${at.name}@example.com`,
                    role: at.role,
                    user_id: `usr_${String(index)}`,
                    token_hash: at.name,
                    now,
                  }),
                ).org;
                break;
              case 'accept':
                org = acceptInvite(org, { token_hash: at.name, person: person(at.name), now }).org;
                break;
              case 'transfer':
                if (org.members.some((member) => member.user_id === at.name && isActiveOwner(member)))
                  org = requestTransfer(org, {
                    transfer_id: 't',
                    from_user_id: at.name,
                    new_owner_user_id: at.to,
                    token_hash: 't',
                    now,
                  }).org;
                break;
              case 'take':
                org = acceptTransfer(org, { token_hash: 't', user_id: at.name, now }).org;
                break;
              case 'replace':
                org = replaceOwner(org, person(at.name), now);
            }
          } catch (error) {
            if (!(error instanceof ApiError)) throw error;
          }
          expect(org.members.some(isActiveOwner)).toBe(true);
          expect(new Set(org.members.map(({ user_id }) => user_id)).size).toBe(org.members.length);
          if (org.transfer?.status === 'pending') {
            const from = org.members.find(({ user_id }) => user_id === org.transfer?.from_user_id);
            expect(from !== undefined && isActiveOwner(from)).toBe(true);
          }
          expect(parseOrg(JSON.stringify(org))).toEqual(org);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('transfers', () => {
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
  ])('to %s', (_what, new_owner_user_id, code) => {
    const request = { transfer_id: 'tfr_1', from_user_id: 'ann', new_owner_user_id, token_hash: 't1', now: AT };
    expect(codeOf(() => requestTransfer(anOrg(), request))).toBe(code);
  });

  test('to an invited member are not possible', () => {
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

  test('one waits at a time; a withdrawn or expired one makes room', () => {
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
  ])('are accepted %s', (_what, over, code) => {
    expect(codeOf(() => acceptTransfer(asked().org, { token_hash: 't1', user_id: 'bob', now: AT, ...over }))).toBe(
      code,
    );
  });

  test('change both roles at once, and only once', () => {
    const { org, transfer } = acceptTransfer(asked().org, { token_hash: 't1', user_id: 'bob', now: AT + 5 });
    expect(rolesOf(org)).toEqual({ bob: 'owner', ann: 'admin', cat: 'viewer' });
    expect(ownerOf(org).user_id).toBe('bob');
    expect(transfer).toMatchObject({ status: 'effective', ended_at: new Date(AT + 5).toISOString() });
    expect(codeOf(() => acceptTransfer(org, { token_hash: 't1', user_id: 'bob', now: AT }))).toBe('invalid_request');
  });

  test('end when one of the two can no longer take part', () => {
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

  test('are expired by the clock', () => {
    const { transfer } = asked();
    expect([transferStatus(transfer, AT + ACCEPT_MS_MAX - 1), transferStatus(transfer, AT + ACCEPT_MS_MAX)]).toEqual([
      'pending',
      'expired',
    ]);
  });
});

describe("the operator's owner", () => {
  test('comes first, and the former one becomes an admin', () => {
    const org = replaceOwner(anOrg({ ann: 'owner', dan: 'owner' }), person('eve'), AT);
    expect([rolesOf(org), ownerOf(org).user_id]).toEqual([{ eve: 'owner', ann: 'admin', dan: 'owner' }, 'eve']);
  });

  test('may be a member, an invited one, or the owner with another address', () => {
    expect(rolesOf(replaceOwner(anOrg(), person('cat'), AT))).toEqual({ cat: 'owner', ann: 'admin', bob: 'admin' });
    const { org } = invite(anOrg(), anInvitation({ email: 'eve@example.com' }));
    expect(rolesOf(replaceOwner(org, person('eve'), AT))).toEqual({
      eve: 'owner',
      ann: 'admin',
      bob: 'admin',
      cat: 'viewer',
    });
    const same = replaceOwner(anOrg(), { user_id: 'ann', email: 'new@example.com' }, AT);
    expect([rolesOf(same), ownerOf(same).email]).toEqual([rolesOf(anOrg()), 'new@example.com']);
  });
});

test('records of the time before members have their owner as the only one; one without an owner is none', () => {
  const before = { ...anOrg(), members: undefined, transfer: undefined, owner: person('ann') };
  const parsed = parseOrg(JSON.stringify(before));
  expect(parsed).toEqual(anOrg({ ann: 'owner' }));
  expect(() => parseOrg(JSON.stringify({ ...anOrg(), members: [] }))).toThrow();
});
