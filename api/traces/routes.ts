// Routes of traces: the list, and one trace as tree, timeline and file.
import { STREAMED, defineRoute, type Route } from '../http/route.ts';
import { exportTrace } from './export.ts';
import { type ListDeps, listTraces } from './list.ts';
import { z } from 'zod';
import { exportBody, exportFile, listMeta, listQuery, timeline, traceItem, traceParams, tree, treeMeta } from './schema.ts';
import { readTimelineOf, readTree } from './tree.ts';

export function traceRoutes(deps: ListDeps): Route[] {
  const { clickhouse } = deps;
  return [
    defineRoute({
      method: 'get',
      path: '/v1/traces',
      operation_id: 'listTraces',
      summary: 'Traces, newest first',
      description:
        'By offset, or by cursor: next_cursor is in the meta of both, so a client can begin with either. A page by cursor stays where it is while new traces arrive.',
      tag: 'Traces',
      permission: 'traces:read',
      query: listQuery,
      response: z.array(traceItem),
      meta: listMeta,
      handler: ({ org_id, query, signal }) => listTraces(deps, org_id, query, signal),
    }),
    defineRoute({
      method: 'get',
      path: '/v1/traces/:trace_id/tree',
      operation_id: 'getTraceTree',
      summary: 'The spans of a trace as a tree',
      description: 'The first 1000 spans; an export gives all of a larger trace.',
      tag: 'Traces',
      permission: 'traces:read',
      resource: { type: 'trace', param: 'trace_id' },
      params: traceParams,
      response: tree,
      meta: treeMeta,
      errors: ['trace_not_found'],
      handler: ({ org_id, params, signal }) => readTree(clickhouse, org_id, params.trace_id, signal),
    }),
    defineRoute({
      method: 'get',
      path: '/v1/traces/:trace_id/timeline',
      operation_id: 'getTraceTimeline',
      summary: 'The spans of a trace on tracks, by time',
      tag: 'Traces',
      permission: 'traces:read',
      resource: { type: 'trace', param: 'trace_id' },
      params: traceParams,
      response: timeline,
      meta: treeMeta,
      errors: ['trace_not_found'],
      handler: ({ org_id, params, signal }) => readTimelineOf(clickhouse, org_id, params.trace_id, signal),
    }),
    defineRoute({
      method: 'post',
      path: '/v1/traces/:trace_id/export',
      operation_id: 'exportTrace',
      summary: 'A whole trace as a file',
      tag: 'Traces',
      permission: 'traces:export',
      audit: null,
      resource: { type: 'trace', param: 'trace_id' },
      params: traceParams,
      body: exportBody,
      example: { format: 'ndjson', anonymize_pii: true },
      response: exportFile,
      media: ['application/json', 'application/x-ndjson'],
      errors: ['trace_not_found'],
      handler: async ({ org_id, params, body, res, signal }) => {
        await exportTrace(clickhouse, org_id, params.trace_id, body, res, signal);
        return STREAMED;
      },
    }),
  ];
}
