// The table of permissions against the contract's, written out by hand.
import { describe, expect, test } from 'vitest';
import { keyMay, PERMISSIONS, type Permission, ROLES, roleMay } from '../../../api/http/permissions.ts';
import { SCOPES } from '../../../schemas/records/api_key.ts';

const ALL = ['viewer', 'member', 'admin', 'owner'];
const MEMBER_UP = ['member', 'admin', 'owner'];
const ADMIN_UP = ['admin', 'owner'];
const OWNER = ['owner'];

const rolesOf = (permission: string): string[] => {
  if (!(permission in PERMISSIONS)) throw new Error(`no permission ${permission}`);
  return ROLES.filter((role) => roleMay(role, permission as Permission));
};

test('roles, least first', () => {
  expect(ROLES).toEqual(ALL);
});

describe('the table of the specification', () => {
  test.each([
    ['references:read', ALL],
    ['references:upload', ADMIN_UP],
    ['references:delete', ADMIN_UP],
    ['members:invite', ADMIN_UP],
    // The endpoint is for owners only, which overrides the table's admin.
    ['members:remove', OWNER],
    ['settings:edit', OWNER],
    ['billing:view', ADMIN_UP],
    ['billing:edit', OWNER],
    ['audit:view', ADMIN_UP],
    ['integrations:write', ADMIN_UP],
    ['pii:edit', ADMIN_UP],
    ['judges:run', MEMBER_UP],
    ['gdpr:execute', OWNER],
    ['retention:override', OWNER],
    ['org:transfer', OWNER],
  ])('the table of roles gives %s: %j', (permission, roles) => {
    expect(rolesOf(permission)).toEqual(roles);
  });
});

describe('what was decided beyond it', () => {
  test.each([
    ['traces:read', MEMBER_UP],
    ['costs:read', MEMBER_UP],
    ['judges:read', MEMBER_UP],
    ['agents:read', ALL],
    ['org:read', ALL],
    ['ingest:write', MEMBER_UP],
    ['agents:write', MEMBER_UP],
    ['datasets:write', MEMBER_UP],
    ['prompts:write', MEMBER_UP],
    ['agents:invite', ADMIN_UP],
    ['judges:write', ADMIN_UP],
    ['budgets:write', ADMIN_UP],
    ['webhooks:read', ADMIN_UP],
    ['api_keys:write', ADMIN_UP],
    ['grants:edit', OWNER],
    ['members:role', OWNER],
  ])('the contract gives %s in addition: %j', (permission, roles) => {
    expect(rolesOf(permission)).toEqual(roles);
  });
});

test('no key may do what only owners may, whatever its scopes', () => {
  const ownerOnly = (Object.keys(PERMISSIONS) as Permission[]).filter((permission) => rolesOf(permission).length === 1);
  expect(ownerOnly.length).toBeGreaterThan(5);
  for (const permission of ownerOnly)
    expect([permission, keyMay(new Set(SCOPES), permission)]).toEqual([permission, false]);
  expect(
    (Object.keys(PERMISSIONS) as Permission[]).filter((permission) => !keyMay(new Set(['*']), permission)).toSorted(),
  ).toEqual(ownerOnly.toSorted());
});

test('the scopes are those of the contract, each by itself', () => {
  expect(SCOPES.toSorted()).toEqual(
    [
      '*',
      'agents:read',
      'agents:write',
      'budgets:write',
      'costs:read',
      'datasets:read',
      'datasets:write',
      'gateway:invoke',
      'ingest:backfill',
      'ingest:write',
      'jobs:read',
      'jobs:write',
      'judges:read',
      'judges:write',
      'org:read',
      'org:write',
      'prompts:read',
      'prompts:write',
      'references:delete',
      'references:read',
      'references:upload',
      'references:write',
      'retention:read',
      'traces:export',
      'traces:read',
      'webhooks:read',
      'webhooks:write',
    ].toSorted(),
  );
  for (const scope of SCOPES.filter((name) => name !== '*')) {
    for (const [permission, { scope: needed }] of Object.entries(PERMISSIONS))
      expect([scope, permission, keyMay(new Set([scope]), permission as Permission)]).toEqual([
        scope,
        permission,
        needed === scope,
      ]);
  }
});
