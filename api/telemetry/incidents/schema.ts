// Shapes of the incident endpoints: what they take, and what they answer.
import { z } from 'zod';
import { SEVERITIES } from '../../../pipeline/domain/incidents/incidents.ts';
import { cursorQuery } from '../../http/list_pages.ts';
import { decodeCursor, encodeCursor } from '../../http/pagination.ts';
import { timeParam } from '../../http/time_param.ts';

const status = z.enum(['open', 'resolved']);
const severity = z.enum(SEVERITIES).describe('critical from 50 traces on');

export const incidentsQuery = z
  .object({
    ...cursorQuery(),
    status: status.optional(),
    severity: severity.optional(),
    agent_id: z.string().min(1).optional(),
    since: timeParam.optional().describe('Incidents whose last trace started then or later'),
    until: timeParam.optional().describe('Incidents whose first trace started then or earlier'),
  })
  .strip();
export type IncidentsQuery = z.output<typeof incidentsQuery>;

export const incidentParams = z.object({ incident_id: z.string() });

export const incidentItem = z
  .object({
    incident_id: z.string(),
    cluster_id: z.string().describe('The same for every incident of this agent, root span and error'),
    status,
    severity,
    agent_id: z.string().nullable(),
    root_span_name: z.string().nullable(),
    error: z
      .string()
      .describe('What the traces failed of, without what differs: # for numbers and ids, "…" for what was quoted'),
    sample: z.string().describe('One such error as it was sent, its first 500 characters'),
    trace_count: z.int(),
    first_trace_at: z.iso.datetime().describe('Start of the first trace'),
    last_trace_at: z.iso.datetime().describe('Start of the last trace so far'),
    opened_at: z.iso.datetime().describe('When the incident was found'),
    resolved_at: z.iso.datetime().nullable(),
    resolved_by: z
      .string()
      .nullable()
      .describe('auto after 30 minutes without a trace, else the id of the user or API key; null while open'),
  })
  .meta({ id: 'Incident' });
export type IncidentItem = z.infer<typeof incidentItem>;

export const incidentDetail = incidentItem
  .extend({ trace_ids: z.array(z.string()).describe('The newest traces of the incident, at most 20') })
  .meta({ id: 'IncidentDetail' });
export type IncidentDetail = z.infer<typeof incidentDetail>;

/** Where a page begins: after this incident. Stays where it is while new ones open. */
export interface IncidentPlace {
  /** opened_at, milliseconds. */
  ms: number;
  incident_id: string;
  /** Incidents before the page. */
  before: number;
}

const placeTuple = z.tuple([z.int(), z.string().regex(/^inc_[0-9a-f]{16}$/), z.int().min(0)]);

export function cursorOf({ ms, incident_id, before }: IncidentPlace): string {
  return encodeCursor([ms, incident_id, before]);
}

/** @throws ApiError invalid_request */
export function placeOf(cursor: string): IncidentPlace {
  const [ms, incident_id, before] = decodeCursor(cursor, placeTuple);
  return { ms, incident_id, before };
}
