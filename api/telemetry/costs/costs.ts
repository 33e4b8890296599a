// What the cost reads need from the rest of the service, and the rule that they share.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { CostSettings } from './settings.ts';

export interface CostDeps {
  clickhouse: ClickHouse;
  settings: CostSettings;
  /** Returns the metadata of a registered agent, or null. */
  agentMetadata: (org_id: string, agent_id: string) => Readonly<Record<string, unknown>> | null;
  policyOf: (org_id: string) => { readonly value_of_outcomes: string | null };
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Returns the realm or department in an agent's metadata; empty if there is none. */
export function labelOf(metadata: Readonly<Record<string, unknown>> | null, field: string): string {
  const value = metadata?.[field];
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}
