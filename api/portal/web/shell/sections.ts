// The entries of the rail: pages that exist and that the person may read, in groups. Pure.
import type { IconName } from '../ui/icons.tsx';

export interface Section {
  /** Path below /o/{org_id}. */
  path: string;
  title: string;
  icon: IconName;
  permission: string | null;
  /** Second key of the sequence that begins with `g`. */
  key: string | null;
}

const section = (
  path: string,
  title: string,
  icon: IconName,
  permission: string | null,
  key: string | null,
): Section => ({
  path,
  title,
  icon,
  permission,
  key,
});

/** Path of the section whose link counts what is open. */
export const INCIDENTS = '/incidents';

/** All sections of the design; those without a screen are left out by existingSections. */
const GROUPS: readonly (readonly Section[])[] = [
  [
    section('', 'Home', 'home', 'traces:read', 'h'),
    section('/traces', 'Traces', 'traces', 'traces:read', 't'),
    section('/search', 'Search', 'search', 'traces:read', '/'),
    section('/sessions', 'Sessions', 'sessions', 'traces:read', 's'),
    section('/users', 'Users', 'users', 'traces:read', 'u'),
    section('/costs', 'Costs', 'costs', 'costs:read', 'c'),
  ],
  [
    section('/evals', 'Evals', 'evals', 'judges:read', 'e'),
    section('/judges', 'Judges', 'judges', 'judges:read', 'j'),
    section('/datasets', 'Datasets', 'datasets', 'datasets:read', 'd'),
    section('/prompts', 'Prompts', 'prompts', 'prompts:read', 'p'),
    section('/annotate', 'Annotate', 'annotate', 'traces:read', 'n'),
  ],
  [
    section('/monitors', 'Monitors', 'monitors', 'traces:read', 'm'),
    section(INCIDENTS, 'Incidents', 'incidents', 'traces:read', 'i'),
    section('/agents', 'Agents', 'agents', 'agents:read', 'a'),
    section('/webhooks', 'Webhooks', 'webhooks', 'webhooks:read', 'w'),
  ],
  [
    section('/audit', 'Audit', 'audit', 'audit:view', null),
    section('/jobs', 'Jobs', 'clock', 'jobs:read', null),
    section('/settings', 'Settings', 'settings', 'org:read', null),
    section('/shared', 'Shared with me', 'link', null, null),
    section('/start', 'Send data', 'terminal', null, null),
  ],
];

export interface SettingsSection {
  /** Last segment of the address. */
  id: string;
  title: string;
  permission: string;
}

/** The tabs of the settings, in their order. */
export const SETTINGS: readonly SettingsSection[] = [
  { id: 'members', title: 'Members', permission: 'org:read' },
  { id: 'roles', title: 'Roles', permission: 'org:read' },
  { id: 'keys', title: 'API keys', permission: 'org:read' },
  { id: 'grants', title: 'Grants', permission: 'grants:edit' },
  { id: 'policy', title: 'Policy', permission: 'org:read' },
  { id: 'privacy', title: 'Privacy', permission: 'pii:edit' },
  { id: 'retention', title: 'Retention', permission: 'retention:read' },
  { id: 'sampling', title: 'Sampling', permission: 'traces:read' },
  { id: 'plan', title: 'Plan', permission: 'org:read' },
];

/**
 * Returns the groups of the rail.
 * @param paths paths of the table of routes
 */
export function sectionsFor(paths: ReadonlySet<string>, can: (permission: string) => boolean): Section[][] {
  return GROUPS.map((group) =>
    group.filter(({ path, permission }) => paths.has(`/o/:org_id${path}`) && (permission === null || can(permission))),
  ).filter((group) => group.length > 0);
}

/** Returns true if an address is in a section: its own page or a page below it. */
export function isWithin(path: string, sectionPath: string, org_id: string): boolean {
  const own = `/o/${encodeURIComponent(org_id)}${sectionPath}`;
  return path === own || (sectionPath !== '' && path.startsWith(`${own}/`));
}
