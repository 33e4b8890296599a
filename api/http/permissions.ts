// The permissions, with the role and the API key scope that grant each. Every route names one
// permission; nothing else decides who may call it.
import type { Scope } from '../../schemas/records/api_key.ts';

/** Roles of members; each includes the permissions of those before it. */
export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const;
export type Role = (typeof ROLES)[number];

interface Grant {
  /** The lowest role with the permission. */
  role: Role;
  /**
   * The scope that gives a key the permission; null where no key can have it, because a key never
   * counts as an owner.
   */
  scope: Exclude<Scope, '*'> | null;
}

export const PERMISSIONS = {
  'ingest:write': { role: 'member', scope: 'ingest:write' },
  /** Send events of the past, which are counted without asking budgets and fire nothing. */
  'ingest:backfill': { role: 'admin', scope: 'ingest:backfill' },
  'gateway:invoke': { role: 'member', scope: 'gateway:invoke' },
  'traces:read': { role: 'member', scope: 'traces:read' },
  'traces:export': { role: 'member', scope: 'traces:export' },
  'costs:read': { role: 'member', scope: 'costs:read' },
  'budgets:write': { role: 'admin', scope: 'budgets:write' },
  'judges:read': { role: 'member', scope: 'judges:read' },
  'judges:run': { role: 'member', scope: 'judges:write' },
  'judges:write': { role: 'admin', scope: 'judges:write' },
  'datasets:read': { role: 'member', scope: 'datasets:read' },
  'datasets:write': { role: 'member', scope: 'datasets:write' },
  'prompts:read': { role: 'member', scope: 'prompts:read' },
  'prompts:write': { role: 'member', scope: 'prompts:write' },
  'agents:read': { role: 'viewer', scope: 'agents:read' },
  'agents:write': { role: 'member', scope: 'agents:write' },
  /** Create the tokens with which agents register for the first time. */
  'agents:invite': { role: 'admin', scope: 'agents:write' },
  /** Resolve an incident of an agent. */
  'incidents:resolve': { role: 'member', scope: 'agents:write' },
  'webhooks:read': { role: 'admin', scope: 'webhooks:read' },
  'integrations:write': { role: 'admin', scope: 'webhooks:write' },
  'references:read': { role: 'viewer', scope: 'references:read' },
  'references:write': { role: 'admin', scope: 'references:write' },
  'references:upload': { role: 'admin', scope: 'references:upload' },
  'references:delete': { role: 'admin', scope: 'references:delete' },
  'jobs:read': { role: 'member', scope: 'jobs:read' },
  'jobs:write': { role: 'admin', scope: 'jobs:write' },
  'retention:read': { role: 'member', scope: 'retention:read' },
  'retention:override': { role: 'owner', scope: null },
  'org:read': { role: 'viewer', scope: 'org:read' },
  'settings:edit': { role: 'owner', scope: null },
  'api_keys:write': { role: 'admin', scope: 'org:write' },
  'members:invite': { role: 'admin', scope: 'org:write' },
  'members:remove': { role: 'owner', scope: null },
  'members:role': { role: 'owner', scope: null },
  'grants:edit': { role: 'owner', scope: null },
  'org:transfer': { role: 'owner', scope: null },
  'billing:view': { role: 'admin', scope: 'org:read' },
  'billing:edit': { role: 'owner', scope: null },
  'audit:view': { role: 'admin', scope: 'org:read' },
  'pii:edit': { role: 'admin', scope: 'org:write' },
  'gdpr:execute': { role: 'owner', scope: null },
} as const satisfies Record<string, Grant>;
export type Permission = keyof typeof PERMISSIONS;

/**
 * Callers that a route accepts: holders of a permission, any person with a valid token, the
 * operator, or everybody.
 */
export type Access = Permission | 'person' | 'operator' | 'public';

/** Returns true if a key with these scopes has the permission. */
export function keyMay(scopes: ReadonlySet<Scope>, permission: Permission): boolean {
  const { scope } = PERMISSIONS[permission];
  return scope !== null && holds(scopes, scope);
}

/** Returns true if a member with this role has the permission. */
export function roleMay(role: Role, permission: Permission): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(PERMISSIONS[permission].role);
}

/**
 * Returns the permissions of a role that the caller does not hold; empty when the caller may assign
 * the role.
 */
export function permissionsMissing(role: Role, holds: (permission: Permission) => boolean): Permission[] {
  return (Object.keys(PERMISSIONS) as Permission[]).filter(
    (permission) => roleMay(role, permission) && !holds(permission),
  );
}

/** Status of an API key: all permissions of its scopes work, some do, or none does. */
export type KeyStatus = 'active' | 'capped' | 'revoked';

/**
 * Returns the permissions of a key.
 * @param role present role of the member behind the key; null when that member has left; undefined
 * when no member is behind it
 */
export function keyPermissions(scopes: ReadonlySet<Scope>, role: Role | null | undefined): Permission[] {
  if (role === null) return [];
  return (Object.keys(PERMISSIONS) as Permission[]).filter(
    (permission) => keyMay(scopes, permission) && (role === undefined || roleMay(role, permission)),
  );
}

/** Returns the status of a key; for the role see keyPermissions. */
export function keyStatus(scopes: ReadonlySet<Scope>, role: Role | null | undefined): KeyStatus {
  if (role === null) return 'revoked';
  const held = keyPermissions(scopes, role).length;
  const full = keyPermissions(scopes, undefined).length;
  if (held === full) return 'active';
  return held === 0 ? 'revoked' : 'capped';
}

/** Returns true if a key with these scopes has `scope`. */
function holds(scopes: ReadonlySet<Scope>, scope: Scope): boolean {
  return scopes.has('*') || scopes.has(scope);
}

/**
 * Returns the wanted scopes that a key with these scopes cannot delegate; empty when the new key
 * has at most its creator's permissions.
 */
export function beyondKey(scopes: ReadonlySet<Scope>, wanted: readonly Scope[]): Scope[] {
  return wanted.filter((scope) => !holds(scopes, scope));
}

/**
 * Returns the wanted scopes that a member with this role cannot delegate: a scope requires every
 * permission that it gives a key.
 */
export function beyondRole(role: Role, wanted: readonly Scope[]): Scope[] {
  const needs = (scope: Scope) =>
    (Object.keys(PERMISSIONS) as Permission[]).filter((name) => {
      const own = PERMISSIONS[name].scope;
      return own !== null && (scope === '*' || own === scope);
    });
  return wanted.filter((scope) => needs(scope).some((permission) => !roleMay(role, permission)));
}
