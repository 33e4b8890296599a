// Request and response shapes of incidents.
import { z } from 'zod';
import { SEVERITIES } from '../../../pipeline/domain/incidents/incidents.ts';
import { cursorQuery } from '../../http/list_pages.ts';
import { decodeCursor, encodeCursor } from '../../http/pagination.ts';
import { timeParam } from '../../http/time_param.ts';

const status = z.enum(['open', 'resolved']);
const severity = z.enum(SEVERITIES).describe('critical from 50 traces on, otherwise warning');

export const incidentsQuery = z
  .object({
    ...cursorQuery(),
    status: status.optional(),
    severity: severity.optional(),
    agent_id: z.string().min(1).optional(),
    cluster_id: z.string().min(1).optional().describe('Incidents of one agent, root span and error'),
    since: timeParam.optional().describe('Incidents whose last trace started at or after this time'),
    until: timeParam.optional().describe('Incidents whose first trace started at or before this time'),
  })
  .strip();
export type IncidentsQuery = z.output<typeof incidentsQuery>;

export const incidentParams = z.object({ incident_id: z.string() });

export const incidentItem = z
  .object({
    incident_id: z.string(),
    cluster_id: z.string().describe('Id shared by all incidents of this agent, root span and error'),
    status,
    severity,
    agent_id: z.string().nullable(),
    root_span_name: z.string().nullable(),
    error: z
      .string()
      .describe('Error of the traces without its variable parts: # for numbers and ids, "…" for quoted text'),
    sample: z.string().describe('First 500 characters of one such error as it was sent'),
    trace_count: z.int(),
    first_trace_at: z.iso.datetime().describe('Start of the first trace'),
    last_trace_at: z.iso.datetime().describe('Start of the latest trace'),
    opened_at: z.iso.datetime().describe('When the incident was detected'),
    resolved_at: z.iso.datetime().nullable(),
    resolved_by: z
      .string()
      .nullable()
      .describe('auto after 30 minutes without a trace, otherwise the id of the user or API key; null while open'),
  })
  .meta({ id: 'Incident' });
export type IncidentItem = z.infer<typeof incidentItem>;

export const incidentDetail = incidentItem
  .extend({ trace_ids: z.array(z.string()).describe('Ids of the newest traces of the incident, at most 20') })
  .meta({ id: 'IncidentDetail' });
export type IncidentDetail = z.infer<typeof incidentDetail>;

/** Maximum buckets of a series. */
export const SERIES_BUCKETS_MAX = 120;

export const incidentSeries = z
  .object({
    incident_id: z.string(),
    cluster_id: z.string(),
    bucket_seconds: z.int().min(60).describe('Length of a bucket, which follows from the length of the incident'),
    opened_at: z.iso.datetime(),
    resolved_at: z.iso.datetime().nullable(),
    buckets: z
      .array(
        z.object({
          at: z.iso.datetime().describe('Start of the bucket'),
          traces: z.int().min(0).describe('Traces of the cluster that failed in the bucket'),
          of_incident: z.int().min(0).describe('Those of them that belong to the incident'),
        }),
      )
      .describe(`Every bucket from some time before the incident to its end or to now, at most ${SERIES_BUCKETS_MAX}`),
  })
  .meta({ id: 'IncidentSeries' });
export type IncidentSeries = z.infer<typeof incidentSeries>;

/** Position after which a page begins: an incident. It is stable while incidents open. */
export interface IncidentPlace {
  /** opened_at, milliseconds since the epoch. */
  ms: number;
  incident_id: string;
  /** Number of incidents before the page. */
  before: number;
}

const placeTuple = z.tuple([z.int(), z.string().regex(/^inc_[0-9a-f]{16}$/), z.int().min(0)]);

export function cursorOf({ ms, incident_id, before }: IncidentPlace): string {
  return encodeCursor([ms, incident_id, before]);
}

/** @throws ApiError invalid_request for a cursor that this list did not return */
export function placeOf(cursor: string): IncidentPlace {
  const [ms, incident_id, before] = decodeCursor(cursor, placeTuple);
  return { ms, incident_id, before };
}
