// The audit log's reads of ClickHouse: each query of sql/queries/audit with the shapes of its
// parameters and rows.
import { z } from 'zod';
import { auditActor, auditTarget } from '../../../schemas/records/audit.ts';
import { defineQuery } from '../../../sql/client/query.ts';

/** Int64 and UInt64 arrive as text; these values stay below 2^53. */
const count = z.coerce.number().pipe(z.int());

const filterFields = {
  org_id: z.string(),
  /** Changes without an outcome are listed if they began at this time or earlier. */
  settled_ms: z.int(),
  action: z.string().optional(),
  actor_id: z.string().optional(),
  target_id: z.string().optional(),
  since_ms: z.int().optional(),
  until_ms: z.int().optional(),
};

const filters = z.object(filterFields);
/** Filters of the list; a filter that is left out matches everything. */
export type AuditFilters = z.input<typeof filters>;

const auditRow = z.object({
  audit_id: z.string(),
  org_id: z.string(),
  outcome: z.enum(['done', 'unknown']),
  actor_type: auditActor.shape.type,
  actor_id: z.string(),
  action: z.string(),
  target_type: auditTarget.shape.type,
  target_id: z.string(),
  changes: z.string().transform((text) => z.record(z.string(), z.unknown()).parse(JSON.parse(text))),
  request_id: z.string(),
  ip: z.string(),
  created_ms: count,
});
export type AuditRow = z.output<typeof auditRow>;

export const readAuditTotal = defineQuery({
  name: 'audit_total',
  file: 'audit/total.sql',
  params: filters,
  row: z.object({ total: count }),
});

export const readAuditPage = defineQuery({
  name: 'audit_page',
  file: 'audit/page.sql',
  params: z.object({ ...filterFields, from_ms: z.int().optional(), from_id: z.string().optional(), rows: z.int() }),
  row: auditRow,
});
