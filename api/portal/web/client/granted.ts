// What grants add to a person's role on the page of one thing: a trace, an agent, a judge or a dataset. Pure.
import type { components } from './contract.d.ts';

export type Grant = components['schemas']['LoginSession']['orgs'][number]['grants'][number];

/** Types of things by the part of an address that names one. */
const TYPES: Readonly<Record<string, Grant['resource']['type']>> = {
  trace_id: 'trace',
  agent_id: 'agent',
  judge_id: 'judge',
  dataset_id: 'dataset',
};

/** Path of the page of a thing below /o/{org_id}. */
const PAGES: Readonly<Record<Grant['resource']['type'], string>> = {
  trace: 'traces',
  agent: 'agents',
  judge: 'judges',
  dataset: 'datasets',
};

/** Returns the permissions that grants give on the thing that an address names. */
export function grantedOn(grants: readonly Grant[], params: Readonly<Record<string, string>>): ReadonlySet<string> {
  return new Set(
    grants
      .filter(({ resource }) =>
        Object.entries(params).some(([name, id]) => TYPES[name] === resource.type && id === resource.id),
      )
      .flatMap(({ permissions }) => permissions),
  );
}

/** Returns the address of the thing that a grant opens. */
export const grantPath = (org_id: string, { resource }: Grant): string =>
  `/o/${encodeURIComponent(org_id)}/${PAGES[resource.type]}/${encodeURIComponent(resource.id)}`;
