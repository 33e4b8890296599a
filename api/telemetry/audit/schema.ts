// Shapes of the audit log: what a reader asks, and what a record shows.
import { z } from 'zod';
import { auditActor, auditTarget } from '../../../schemas/records/audit.ts';
import { decodeCursor, encodeCursor, limitParam } from '../../http/pagination.ts';
import { timeParam } from '../../http/time_param.ts';

export const auditQuery = z.object({
  action: z.string().min(1).max(200).optional().describe('For example member.role_change'),
  actor_id: z.string().min(1).max(512).optional().describe('Id of the user or API key'),
  since: timeParam.optional().describe('Mutations of then or later'),
  until: timeParam.optional().describe('Mutations of then or earlier'),
  limit: limitParam,
  cursor: z.string().max(500).optional().describe('meta.next_cursor of the previous page'),
});
export type AuditQuery = z.output<typeof auditQuery>;

export const auditRecord = z
  .object({
    audit_id: z.string(),
    org_id: z.string(),
    actor: auditActor,
    action: z.string(),
    target: auditTarget.describe('Its id is empty while the outcome is unknown for a thing that was to be made'),
    changes: z
      .record(z.string(), z.unknown())
      .describe(
        'What changed, field by field, without secrets; {truncated: true, fields} and the small ones of its values where that is too large',
      ),
    request_id: z.string().nullable().describe('null for what no request asked for'),
    ip: z.string().nullable().describe('null where unknown'),
    created_at: z.iso.datetime(),
    outcome: z
      .enum(['done', 'unknown'])
      .describe('unknown: the service was cut off in the middle, so the mutation may or may not have happened'),
  })
  .meta({ id: 'AuditRecord' });
export type AuditRecord = z.infer<typeof auditRecord>;

/** Where a page begins: after this record. Stays where it is while new records arrive. */
export interface AuditPlace {
  /** created_at, milliseconds. */
  ms: number;
  audit_id: string;
  /** Records before the page. */
  before: number;
}

const placeTuple = z.tuple([z.int(), z.string().regex(/^aud_[0-9a-f]{32}$/), z.int().min(0)]);

export function cursorOf({ ms, audit_id, before }: AuditPlace): string {
  return encodeCursor([ms, audit_id, before]);
}

/** @throws ApiError invalid_request */
export function placeOf(cursor: string): AuditPlace {
  const [ms, audit_id, before] = decodeCursor(cursor, placeTuple);
  return { ms, audit_id, before };
}
