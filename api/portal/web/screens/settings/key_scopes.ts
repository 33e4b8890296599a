// The scopes of API keys: in groups, with what each lets a key do, and the presets of the form. Pure.
import type { components } from '../../client/contract.d.ts';

type PermissionItem = components['schemas']['PermissionItem'];
export type Scope = NonNullable<PermissionItem['scope']>;

export interface ScopeItem {
  scope: Scope;
  /** What the scope lets a key do: the words of its permissions. */
  words: string;
}

interface ScopeGroup {
  title: string;
  scopes: readonly ScopeItem[];
}

/** Names of the groups by the first part of their scopes, in the order of the form. */
const GROUPS: readonly (readonly [title: string, ...beginnings: string[]])[] = [
  ['Send', 'ingest', 'gateway'],
  ['Telemetry', 'traces', 'costs', 'budgets'],
  ['Quality', 'judges', 'datasets', 'prompts'],
  ['Agents and webhooks', 'agents', 'webhooks'],
  ['Organization', 'org', 'retention', 'jobs', 'references'],
];

export const PRESETS = [
  {
    id: 'sdk',
    label: 'SDK',
    words: 'Sends events, calls the gateway and reads prompts. For programs in production',
    scopes: ['ingest:write', 'gateway:invoke', 'prompts:read'],
  },
  {
    id: 'ci',
    label: 'CI',
    words: 'Runs evals over datasets and reads their traces. For tests before a release',
    scopes: [
      'ingest:write',
      'gateway:invoke',
      'traces:read',
      'judges:read',
      'judges:write',
      'datasets:read',
      'datasets:write',
      'prompts:read',
      'prompts:write',
    ],
  },
  {
    id: 'read',
    label: 'Read only',
    words: 'Reads everything but webhooks and changes nothing. For dashboards and notebooks',
    scopes: [
      'traces:read',
      'traces:export',
      'costs:read',
      'judges:read',
      'datasets:read',
      'prompts:read',
      'agents:read',
      'retention:read',
      'org:read',
      'jobs:read',
    ],
  },
] as const satisfies readonly { id: string; label: string; words: string; scopes: readonly Scope[] }[];

/**
 * Returns the scopes that a person can give a key, in groups. A scope requires every permission that it
 * gives.
 */
export function scopeGroups(
  items: readonly PermissionItem[],
  can: (permission: string) => boolean,
): readonly ScopeGroup[] {
  const byScope = new Map<Scope, PermissionItem[]>();
  for (const item of items)
    if (item.scope !== null) byScope.set(item.scope, [...(byScope.get(item.scope) ?? []), item]);
  const all = [...byScope]
    .filter(([, gives]) => gives.every(({ permission }) => can(permission)))
    .map(([scope, gives]): ScopeItem => ({ scope, words: gives.map(({ description }) => description).join('. ') }));
  return GROUPS.map(([title, ...beginnings]) => ({
    title,
    scopes: all.filter(({ scope }) => beginnings.includes(scope.split(':')[0] ?? '')),
  })).filter(({ scopes }) => scopes.length > 0);
}

/** Returns the preset with exactly these scopes. */
export const presetOf = (scopes: ReadonlySet<string>) =>
  PRESETS.find((preset) => preset.scopes.length === scopes.size && preset.scopes.every((scope) => scopes.has(scope)));

/** Returns the scopes of a key in short: the name of its preset, or the scopes. */
export function scopeWords(scopes: readonly string[]): string {
  if (scopes.includes('*')) return 'All scopes';
  return presetOf(new Set(scopes))?.label ?? scopes.join(', ');
}

const DAY_MS = 86_400_000;

/** How long the old key of a rotation works: not at all, or some days in which programs change over. */
export const OVERLAPS = [
  { days: 1, label: '1 day' },
  { days: 7, label: '7 days' },
  { days: 30, label: '30 days' },
  { days: 0, label: 'Not at all: it is revoked now' },
] as const;

/**
 * Returns when the old key of a rotation ends: after the overlap, or earlier if it expires earlier.
 * @param now milliseconds since the epoch
 */
export function oldKeyEnds(expires_at: string | null, days: number, now: number): string {
  const end = now + days * DAY_MS;
  return new Date(expires_at === null ? end : Math.min(end, Date.parse(expires_at))).toISOString();
}

/** Returns when the new key of a rotation expires: it lives as long as the old one was to live. */
export function newKeyEnds(created_at: string, expires_at: string | null, now: number): string | null {
  if (expires_at === null) return null;
  return new Date(now + Math.max(DAY_MS, Date.parse(expires_at) - Date.parse(created_at))).toISOString();
}
