// Roles of members as functions of the organization's record: what changes, what is refused, and that an owner stays.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ApiError } from '../../../api/http/errors.ts';
import { acceptInvite, changeRole, invite, removeMember, replaceOwner } from '../../../api/control/orgs/membership.ts';
import { acceptTransfer, requestTransfer } from '../../../api/control/orgs/ownership.ts';
import { isActiveOwner, type MemberRole, ownerOf, parseOrg } from '../../../schemas/records/org.ts';
import { anInvitation, anOrg, AT, codeOf, person, rolesOf } from './an_org.ts';

test('the last owner can be neither removed nor demoted, and one of two owners can', () => {
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

test('an owner who has not accepted does not count as the last owner', () => {
  const { org } = invite(anOrg(), anInvitation({ role: 'owner' }));
  expect(codeOf(() => removeMember(org, 'ann', AT))).toBe('conflict');
  expect(rolesOf(removeMember(org, 'usr_1', AT).org)).toEqual(rolesOf(anOrg()));
});

test('setting the same role changes nothing', () => {
  const org = anOrg();
  expect(changeRole(org, 'ann', 'owner', AT)).toMatchObject({ from: 'owner' });
  expect(changeRole(org, 'ann', 'owner', AT).org).toBe(org);
});

test('changing or removing an unknown member is member_not_found', () => {
  expect([codeOf(() => removeMember(anOrg(), 'x', AT)), codeOf(() => changeRole(anOrg(), 'x', 'owner', AT))]).toEqual([
    'member_not_found',
    'member_not_found',
  ]);
});

test('any sequence of changes leaves an active owner and no user twice', () => {
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
                  user_id: `usr_${index}`,
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

test('the owner that the operator sets is the first member, and the former owner becomes an admin', () => {
  const org = replaceOwner(anOrg({ ann: 'owner', dan: 'owner' }), person('eve'), AT);
  expect([rolesOf(org), ownerOf(org).user_id]).toEqual([{ eve: 'owner', ann: 'admin', dan: 'owner' }, 'eve']);
});

test('the operator can make an owner of a member, of an invited member, or of the owner with another address', () => {
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

test('a record of a version without members is read with its owner as the only member, and one without an owner is refused', () => {
  const before = { ...anOrg(), members: undefined, transfer: undefined, owner: person('ann') };
  const parsed = parseOrg(JSON.stringify(before));
  expect(parsed).toEqual(anOrg({ ann: 'owner' }));
  expect(() => parseOrg(JSON.stringify({ ...anOrg(), members: [] }))).toThrow();
});
