// Shapes of the audit trail: what the process that makes a change sends to the one that stores its
// record.
import { z } from 'zod';

export const auditActor = z.object({ type: z.enum(['user', 'api_key', 'operator', 'system']), id: z.string() });
export type AuditActor = z.infer<typeof auditActor>;

export const AUDIT_TARGETS = [
  'org',
  'member',
  'monitor',
  'api_key',
  'transfer',
  'grant',
  'policy',
  'agent',
  'register_token',
  'session',
  'job',
  'budget',
  'alert_config',
  'prices',
  'anomaly_config',
  'webhook',
  'judge',
  'eval',
  'dataset',
  'dead_letter',
  'prompt',
  'trace',
  'incident',
  'retention',
  'pii_policy',
  'score',
  'analyst',
  'view',
  'annotation_queue',
] as const;
export const auditTarget = z.object({ type: z.enum(AUDIT_TARGETS), id: z.string() });
export type AuditTarget = z.infer<typeof auditTarget>;
