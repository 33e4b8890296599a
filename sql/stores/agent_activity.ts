// Reads of the time of each agent's newest event, for the API and the jobs of the pipeline. Times
// are milliseconds since the epoch.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery, type QueryOptions } from '../client/query.ts';

/**
 * Maximum agents of one lookup, and maximum bytes of their ids: the server accepts parameters of up
 * to 128 KiB, escapes included.
 */
const LOOKUP_AGENTS_MAX = 2000;
const LOOKUP_BYTES_MAX = 60_000;

const milliseconds = z.coerce.number();
const seen = { org_id: z.string(), agent_id: z.string(), last_seen_ms: milliseconds };

const lastSeenQuery = defineQuery({
  name: 'agents_last_seen',
  file: 'agents/last_seen.sql',
  params: z.object({ orgs: z.array(z.string()), agents: z.array(z.string()) }),
  row: z.object(seen),
});
const newestLandingQuery = defineQuery({
  name: 'agents_newest_landing',
  file: 'agents/newest_landing.sql',
  params: z.object({}),
  row: z.object({ landed_ms: milliseconds }),
});

export interface AgentRef {
  org_id: string;
  agent_id: string;
}

export interface AgentSeen extends AgentRef {
  last_seen_ms: number;
}

/**
 * Agents with a landing after `since`, oldest landing first; a few more than `rows` when many
 * landed at the same time.
 */
export const seenSince = defineQuery({
  name: 'agents_seen_since',
  file: 'agents/seen_since.sql',
  params: z.object({ since: z.int(), rows: z.int() }),
  row: z.object({ ...seen, landed_ms: milliseconds }),
});

/** Agents that events of an organization named in the last days, the newest event first. */
export const sendersOf = defineQuery({
  name: 'agents_senders',
  file: 'agents/senders.sql',
  params: z.object({ org_id: z.string(), days: z.int(), rows: z.int() }),
  row: z.object({ agent_id: z.string(), last_seen_ms: milliseconds }),
});

/** Yields the agents in batches that fit into one lookup. */
export function* lookupBatches<T extends AgentRef>(agents: readonly T[]): Generator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for (const agent of agents) {
    const more = Buffer.byteLength(agent.org_id) + Buffer.byteLength(agent.agent_id);
    if (batch.length > 0 && (batch.length >= LOOKUP_AGENTS_MAX || bytes + more > LOOKUP_BYTES_MAX)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(agent);
    bytes += more;
  }
  if (batch.length > 0) yield batch;
}

/**
 * Returns the time of the newest event of each agent of one batch (lookupBatches), without agents
 * that have none.
 */
export function lastSeenOf(
  client: ClickHouse,
  agents: readonly AgentRef[],
  options?: QueryOptions,
): Promise<AgentSeen[]> {
  const params = { orgs: agents.map(({ org_id }) => org_id), agents: agents.map(({ agent_id }) => agent_id) };
  return lastSeenQuery(client, params, options);
}

/** Returns the time of the newest landing, by the store's clock; 0 before the first. */
export async function newestLanding(client: ClickHouse, options?: QueryOptions): Promise<number> {
  return (await newestLandingQuery(client, {}, options))[0]?.landed_ms ?? 0;
}
