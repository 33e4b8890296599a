// Request and response shapes of the audit log.
import { z } from 'zod';
import { auditActor, auditTarget } from '../../../schemas/records/audit.ts';
import { decodeCursor, encodeCursor, limitParam } from '../../http/pagination.ts';
import { timeParam } from '../../http/time_param.ts';

export const auditQuery = z.object({
  action: z.string().min(1).max(200).optional().describe('Action, for example member.role_change'),
  actor_id: z.string().min(1).max(512).optional().describe('Id of the user or API key that made the change'),
  target_id: z.string().min(1).max(512).optional().describe('Id of what was changed'),
  since: timeParam.optional().describe('Changes at or after this time'),
  until: timeParam.optional().describe('Changes at or before this time'),
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
    target: auditTarget.describe('What was changed. Its id is empty while the outcome of a creation is unknown'),
    changes: z
      .record(z.string(), z.unknown())
      .describe(
        'Changed fields, without secrets. If they are too large: {truncated: true, fields} and the small values',
      ),
    request_id: z.string().nullable().describe('null for a change that no request asked for'),
    ip: z.string().nullable().describe('null if unknown'),
    created_at: z.iso.datetime(),
    outcome: z
      .enum(['done', 'unknown'])
      .describe('unknown: the service stopped in the middle, so the change may or may not have happened'),
  })
  .meta({ id: 'AuditRecord' });
export type AuditRecord = z.infer<typeof auditRecord>;

/** Position after which a page begins: a record. It is stable while new records arrive. */
export interface AuditPlace {
  /** created_at, milliseconds since the epoch. */
  ms: number;
  audit_id: string;
  /** Number of records before the page. */
  before: number;
}

const placeTuple = z.tuple([z.int(), z.string().regex(/^aud_[0-9a-f]{32}$/), z.int().min(0)]);

export function cursorOf({ ms, audit_id, before }: AuditPlace): string {
  return encodeCursor([ms, audit_id, before]);
}

/** @throws ApiError invalid_request for a cursor that this list did not return */
export function placeOf(cursor: string): AuditPlace {
  const [ms, audit_id, before] = decodeCursor(cursor, placeTuple);
  return { ms, audit_id, before };
}
