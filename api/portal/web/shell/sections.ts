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
    section('/incidents', 'Incidents', 'incidents', 'agents:read', 'i'),
    section('/agents', 'Agents', 'agents', 'agents:read', 'a'),
    section('/webhooks', 'Webhooks', 'webhooks', 'webhooks:read', 'w'),
  ],
  [
    section('/audit', 'Audit', 'audit', 'audit:view', null),
    section('/settings', 'Settings', 'settings', 'org:read', null),
    section('/start', 'Send data', 'terminal', null, null),
  ],
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
