// Routes of traces: the list, and one trace as tree, timeline and file.
import { z } from 'zod';
import { defineRoute, type Route, STREAMED } from '../../http/route.ts';
import { WRITTEN_AS_READ } from '../../http/written_answers.ts';
import { type CompareDeps, compareTwo } from './compare.ts';
import { compareBody, comparison, replayBody, replayed } from './compare_schema.ts';
import { type ExportDeps, exportTrace } from './export.ts';
import { type ListDeps, listTraces } from './list.ts';
import { type ReplayDeps, replayTrace } from './replay.ts';
import {
  exportBody,
  exportFile,
  listMeta,
  listQuery,
  timeline,
  traceItem,
  traceParams,
  tree,
  treeMeta,
} from './schema.ts';
import { readTimelineOf, readTree } from './tree.ts';

const TAG = 'Traces';

/** What the routes of traces need. */
export type TracesDeps = ListDeps & ExportDeps & CompareDeps & ReplayDeps;

export function traceRoutes(deps: TracesDeps): Route[] {
  return [
    compareTracesRoute(deps),
    replayTraceRoute(deps),
    listTracesRoute(deps),
    getTraceTreeRoute(deps),
    getTraceTimelineRoute(deps),
    exportTraceRoute(deps),
  ];
}

function compareTracesRoute(deps: TracesDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/traces/compare',
    operation_id: 'compareTraces',
    summary: 'Two traces side by side',
    description:
      "Says of each field whether the candidate differs: numbers beyond the policy's compare_threshold_percent, everything else when it is not the same. judge_score is the mean of the newest scores that judges gave the trace, live or in evals, judge_score.<name> what one of them gave.",
    tag: TAG,
    permission: 'traces:read',
    audit: null,
    body: compareBody,
    example: {
      baseline_trace_id: 'trc_0011223344556677',
      candidate_trace_id: 'trc_8899aabbccddeeff',
      fields: ['duration_ms', 'cost_usd'],
    },
    response: comparison,
    errors: ['trace_not_found'],
    handler: ({ org_id, body, signal }) => compareTwo(deps, org_id, body, signal),
  });
}

function replayTraceRoute(deps: TracesDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/traces/:trace_id/replay',
    operation_id: 'replayTrace',
    summary: 'A trace against the prompts of today',
    description:
      'A model call that names its prompt (attributes.prompt_name, attributes.prompt_variables) is asked the current version of it, any other what it was asked. Without commit the prompts are rendered and no model is called. With commit the models are called, and what they answer is stored as a new trace whose spans have attributes.replay_of and attributes.replay_of_span; that needs the permission gateway:invoke too. A call that cannot be made (its prompt, its variables, its model or its texts are gone) is 422 replay_failed, and nothing is stored.',
    tag: TAG,
    permission: 'traces:read',
    resource: { type: 'trace', param: 'trace_id' },
    audit: { action: 'trace.replay', target: 'trace', param: 'trace_id' },
    params: traceParams,
    body: replayBody,
    example: { commit: false },
    response: replayed,
    errors: ['trace_not_found', 'replay_failed', 'upstream_unavailable', 'rate_limited', 'payment_required'],
    handler: async ({ credential, params, body, signal, audit }) => {
      const data = await replayTrace(deps, { credential, trace_id: params.trace_id, commit: body.commit }, signal);
      if (data.new_trace_id === null) audit.nothing();
      else audit.changes({ new_trace_id: data.new_trace_id, calls: data.spans.length });
      return { data };
    },
  });
}

function listTracesRoute(deps: TracesDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces',
    operation_id: 'listTraces',
    summary: 'Traces, newest first',
    description:
      'By offset, or by cursor: next_cursor is in the meta of both, so a client can begin with either. A page by cursor stays where it is while new traces arrive.',
    tag: TAG,
    permission: 'traces:read',
    query: listQuery,
    response: z.array(traceItem),
    meta: listMeta,
    handler: ({ org_id, query, signal }) => listTraces(deps, org_id, query, signal),
  });
}

function getTraceTreeRoute({ clickhouse }: TracesDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id/tree',
    operation_id: 'getTraceTree',
    summary: 'The spans of a trace as a tree',
    description: 'The first 1000 spans; an export gives all of a larger trace.',
    tag: TAG,
    permission: 'traces:read',
    resource: { type: 'trace', param: 'trace_id' },
    params: traceParams,
    response: tree,
    meta: treeMeta,
    errors: ['trace_not_found'],
    handler: ({ org_id, params, signal }) => readTree(clickhouse, org_id, params.trace_id, signal),
  });
}

function getTraceTimelineRoute({ clickhouse }: TracesDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id/timeline',
    operation_id: 'getTraceTimeline',
    summary: 'The spans of a trace on tracks, by time',
    tag: TAG,
    permission: 'traces:read',
    resource: { type: 'trace', param: 'trace_id' },
    params: traceParams,
    response: timeline,
    meta: treeMeta,
    errors: ['trace_not_found'],
    handler: ({ org_id, params, signal }) => readTimelineOf(clickhouse, org_id, params.trace_id, signal),
  });
}

function exportTraceRoute({ clickhouse, exporterOf, written }: TracesDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/traces/:trace_id/export',
    operation_id: 'exportTrace',
    summary: 'A whole trace as a file',
    description: WRITTEN_AS_READ,
    tag: TAG,
    permission: 'traces:export',
    resource: { type: 'trace', param: 'trace_id' },
    audit: null,
    params: traceParams,
    body: exportBody,
    example: { format: 'ndjson', anonymize_pii: true },
    response: exportFile,
    media: ['application/json', 'application/x-ndjson'],
    errors: ['trace_not_found'],
    handler: async ({ org_id, params, body, res, signal }) => {
      const { anonymize_pii, ...asked } = body;
      const redactor = anonymize_pii ? exporterOf(org_id) : null;
      await written.run(org_id, signal, () =>
        exportTrace(clickhouse, org_id, params.trace_id, { ...asked, redactor }, res, signal),
      );
      return STREAMED;
    },
  });
}
