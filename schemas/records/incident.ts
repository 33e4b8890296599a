// An incident in KV that is not over, or whose end is not published yet. There is one record for
// each cluster of an organization, so that opening and resolving is a CAS write, and nothing is
// opened or published twice. Incidents that are over are rows of ClickHouse.
import { z } from 'zod';
import { orgKey } from './org.ts';

/**
 * Traces of an incident at one instant; times are the starts of traces, milliseconds since the
 * epoch.
 */
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
  /** Number of the state that readers are shown. */
  version: z.int().min(1),
  /** Number of the state that is shown and published; 0 before the first. */
  settled: z.int().min(0),
  /**
   * Traces up to this instant belong to the previous incident, milliseconds since the epoch; 0 when
   * there is none.
   */
  after_ms: z.int(),
  /** Instant at which its first trace failed, milliseconds since the epoch. */
  from_ms: z.int(),
  /** Instant at which its last trace failed, at most a few seconds behind. */
  last_ms: z.int(),
  opened_at: z.iso.datetime(),
  opened: incidentTraces,
  /** null while it is open. */
  closed: incidentTraces
    .extend({
      at: z.iso.datetime(),
      /** `auto`, or the id of a user or API key. */
      by: z.string(),
      /** Traces that fail later do not belong to it. */
      until_ms: z.int(),
    })
    .nullable(),
});
export type IncidentRecord = z.infer<typeof incidentRecord>;

/** Value of `by` for an incident that was resolved automatically. */
export const RESOLVED_BY_TIME = 'auto';

/** Returns the key of the incident of a cluster. */
export const incidentKey = (org_id: string, cluster_id: string): string => `${orgKey(org_id)}.${cluster_id}`;

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseIncident(text: string): IncidentRecord {
  return incidentRecord.parse(JSON.parse(text));
}
