// The route of the audit log. There is none that edits or deletes a record.
import { z } from 'zod';
import { defineRoute, type Route } from '../../http/route.ts';
import { type AuditDeps, listAudit } from './list.ts';
import { auditMeta, auditParams, auditQuery, auditRecord } from './schema.ts';

export function auditRoutes(deps: AuditDeps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/orgs/:org_id/audit-log',
      operation_id: 'listAuditLog',
      summary: 'Who changed what, newest first',
      description:
        'Every mutation outside ingest; one shows within about a second. A page by cursor stays where it is while new records arrive.',
      tag: 'Organization',
      permission: 'audit:view',
      params: auditParams,
      query: auditQuery,
      response: z.array(auditRecord),
      meta: auditMeta,
      handler: ({ org_id, query, signal }) => listAudit(deps, org_id, query, signal),
    }),
  ];
}
