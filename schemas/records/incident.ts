// An incident that is not over and told yet, as it is stored in KV: one record for each cluster of an org, so that opening and
// resolving one is a CAS write and nothing is opened or told twice. Those that are over are rows of ClickHouse.
import { z } from 'zod';
import { orgKey } from './org.ts';

/** Traces of an incident at one instant; times are their starts, milliseconds. */
const incidentTraces = z.object({ trace_count: z.int().min(1), first_trace_ms: z.int(), last_trace_ms: z.int() });
export type IncidentTraces = z.infer<typeof incidentTraces>;

export const incidentRecord = z.object({
  org_id: z.string(),
  incident_id: z.string(),
  cluster_id: z.string(),
  agent_id: z.string(),
  root_span_name: z.string(),
  error: z.string(),
  sample: z.string(),
  /** Counts the states that readers are shown. */
  version: z.int().min(1),
  /** The state that readers can see and that was told; 0 before the first. */
  settled: z.int().min(0),
  /** Traces up to this instant belong to the incident before it, milliseconds; 0 where there is none. */
  after_ms: z.int(),
  /** Its traces failed from here on. */
  from_ms: z.int(),
  /** When the last of them failed, not older than a few seconds. */
  last_ms: z.int(),
  opened_at: z.iso.datetime(),
  opened: incidentTraces,
  /** null while it is open. */
  closed: incidentTraces
    .extend({
      at: z.iso.datetime(),
      /** auto, or the id of a user or API key. */
      by: z.string(),
      /** Traces that failed later are none of its. */
      until_ms: z.int(),
    })
    .nullable(),
});
export type IncidentRecord = z.infer<typeof incidentRecord>;

/** What `by` says of an incident that nobody resolved by hand. */
export const RESOLVED_BY_TIME = 'auto';

/** Key of the incident of a cluster. */
export const incidentKey = (org_id: string, cluster_id: string): string => `${orgKey(org_id)}.${cluster_id}`;

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parseIncident(text: string): IncidentRecord {
  return incidentRecord.parse(JSON.parse(text));
}
