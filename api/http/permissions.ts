// What an API key may be allowed to do, as data. Each route declares the scope that it needs; nothing else decides.

/** Every scope that a key can hold; `*` stands for all of them. */
export const SCOPES = [
  '*',
  'ingest:write',
  'traces:read',
  'traces:export',
  'costs:read',
  'budgets:write',
  'judges:read',
  'judges:write',
  'datasets:read',
  'datasets:write',
  'prompts:read',
  'prompts:write',
  'agents:read',
  'agents:write',
  'webhooks:read',
  'webhooks:write',
  'retention:read',
  'org:read',
  'org:write',
  'gateway:invoke',
  'references:read',
  'references:write',
  'references:upload',
  'references:delete',
  'jobs:read',
  'jobs:write',
] as const;
export type Scope = (typeof SCOPES)[number];

/** Who a route is open to: holders of a scope, the operator, or everybody. */
export type Access = Exclude<Scope, '*'> | 'operator' | 'public';

/** Whether a key with these scopes may do what needs `scope`. */
export function holds(scopes: ReadonlySet<Scope>, scope: Scope): boolean {
  return scopes.has('*') || scopes.has(scope);
}

/** Those of `wanted` that a maker with these scopes cannot hand on; empty when the new key holds at most what its maker may do. */
export function beyond(scopes: ReadonlySet<Scope>, wanted: readonly Scope[]): Scope[] {
  return wanted.filter((scope) => !holds(scopes, scope));
}
