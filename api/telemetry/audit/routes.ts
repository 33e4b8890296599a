// The route of the audit log. No route edits or deletes a record.
import { z } from 'zod';
import { orgParams } from '../../http/common_params.ts';
import { cursorMeta } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type AuditDeps, listAudit } from './list.ts';
import { auditQuery, auditRecord } from './schema.ts';

const TAG = 'Organization';

export function auditRoutes(deps: AuditDeps): Route[] {
  return [listAuditLogRoute(deps)];
}

function listAuditLogRoute(deps: AuditDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/audit-log',
    operation_id: 'listAuditLog',
    summary: 'List the audit log',
    description:
      'Returns the changes that people, API keys, the operator and the system made outside ingest, newest first. A change appears within about a second. Pages by cursor are stable while new records arrive.',
    tag: TAG,
    permission: 'audit:view',
    params: orgParams,
    query: auditQuery,
    response: z.array(auditRecord),
    meta: cursorMeta,
    handler: ({ org_id, query, signal }) => listAudit(deps, org_id, query, signal),
  });
}
