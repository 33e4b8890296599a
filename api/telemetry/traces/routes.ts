// Routes of traces: list, tree, timeline, export, comparison and replay.
import { z } from 'zod';
import { defineRoute, type Route, STREAMED } from '../../http/route.ts';
import { traceItem, traceParams } from '../../http/trace_items.ts';
import { WRITTEN_AS_READ } from '../../http/written_answers.ts';
import { type CompareDeps, compareTwoTraces } from './compare.ts';
import { compareBody, comparison, replayBody, replayed } from './compare_schema.ts';
import { type ExportDeps, exportTrace } from './export.ts';
import { facet, facetsMeta, facetsQuery } from './facet_schema.ts';
import { countFacets } from './facets.ts';
import { type ListDeps, listTraces } from './list.ts';
import { preview, previewsQuery } from './preview_schema.ts';
import { previewTraces } from './previews.ts';
import { type ReplayDeps, replayTrace } from './replay.ts';
import { exportBody, exportFile, listMeta, listQuery, timeline, tree, treeMeta } from './schema.ts';
import { traceSeries } from './series.ts';
import { series, seriesMeta, seriesQuery } from './series_schema.ts';
import type { TraceReads } from './locate.ts';
import { readTimelineOf, readTree } from './tree.ts';

const TAG = 'Traces';

export type TracesDeps = ListDeps & ExportDeps & CompareDeps & ReplayDeps & TraceReads;

export function traceRoutes(deps: TracesDeps): Route[] {
  return [
    compareTracesRoute(deps),
    replayTraceRoute(deps),
    listTracesRoute(deps),
    countTracesRoute(deps),
    getTraceSeriesRoute(deps),
    previewTracesRoute(deps),
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
    summary: 'Compare two traces',
    description:
      'Returns the requested fields of both traces and whether the candidate differs: a number differs if it changes by more than `compare_threshold_percent` of the policy, any other value if it is not equal. `judge_score` is the mean of the newest score of each judge on the trace, live or in evals; `judge_score.<name>` is the newest score of one judge.',
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
    handler: ({ org_id, body, signal }) => compareTwoTraces(deps, org_id, body, signal),
  });
}

function replayTraceRoute(deps: TracesDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/traces/:trace_id/replay',
    operation_id: 'replayTrace',
    summary: 'Replay a trace',
    description:
      'Replays a trace with the current prompt versions. A model call that names its prompt (`attributes.prompt_name`, `attributes.prompt_variables`) gets the current version of that prompt; any other call gets its original input.\n\nWithout `commit` the prompts are rendered and no model is called. With `commit` the models are called and their answers stored as a new trace whose spans have `attributes.replay_of` and `attributes.replay_of_span`; this also needs the permission `gateway:invoke`. If the prompt, its variables, the model or the texts of a call no longer exist, the request fails with 422 `replay_failed` and nothing is stored.',
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
    summary: 'List traces',
    description:
      'Returns traces, newest first, by offset or by cursor: `next_cursor` is in `meta` of both, so a client can start with either. Pages by cursor are stable while new traces arrive.',
    tag: TAG,
    permission: 'traces:read',
    query: listQuery,
    response: z.array(traceItem),
    meta: listMeta,
    handler: ({ org_id, query, signal }) => listTraces(deps, org_id, query, signal),
  });
}

function countTracesRoute(deps: TracesDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/facets',
    operation_id: 'getTraceFacets',
    summary: 'Count traces by field',
    description:
      'Returns the values of fields with the number of traces that have each, under the filters of the list. A field is counted without its own filter, so that its other values can be chosen. Numbers are counted by ranges. A quoted phrase of `search` counts as its words. Fields that are not counted within 3 seconds are returned as `partial`.',
    tag: TAG,
    permission: 'traces:read',
    query: facetsQuery,
    response: z.array(facet),
    meta: facetsMeta,
    handler: ({ org_id, query, signal }) => countFacets(deps, org_id, query, signal),
  });
}

function getTraceSeriesRoute(deps: TracesDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/series',
    operation_id: 'getTraceSeries',
    summary: 'Count traces over time',
    description:
      'Returns numbers of traces, failures, costs, tokens and durations in buckets of time, under the filters of the list. Without `since` the period is the day before `until`; it is at most 400 days. Buckets begin at multiples of their width in UTC, so the first and the last one may be cut by the period. A quoted phrase of `search` counts as its words.',
    tag: TAG,
    permission: 'traces:read',
    query: seriesQuery,
    response: series,
    meta: seriesMeta,
    handler: ({ org_id, query, signal }) => traceSeries(deps, org_id, query, signal),
  });
}

function previewTracesRoute({ clickhouse }: TracesDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/previews',
    operation_id: 'getTracePreviews',
    summary: 'Preview traces',
    description:
      'Returns what the rows of a list show of traces beyond the list itself: the beginning of the first message of the user and of the last answer, the first error, the models and the newest verdicts. Traces that the organization does not have are left out.',
    tag: TAG,
    permission: 'traces:read',
    query: previewsQuery,
    response: z.array(preview),
    handler: async ({ org_id, query, signal }) => ({ data: await previewTraces(clickhouse, org_id, query, signal) }),
  });
}

function getTraceTreeRoute(deps: TracesDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id/tree',
    operation_id: 'getTraceTree',
    summary: 'Get the tree of a trace',
    description:
      'Returns the spans of a trace as a tree, at most the first 1,000. Export a larger trace to get all of its spans.',
    tag: TAG,
    permission: 'traces:read',
    resource: { type: 'trace', param: 'trace_id' },
    params: traceParams,
    response: tree,
    meta: treeMeta,
    errors: ['trace_not_found'],
    handler: ({ org_id, params, signal }) => readTree(deps, org_id, params.trace_id, signal),
  });
}

function getTraceTimelineRoute(deps: TracesDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id/timeline',
    operation_id: 'getTraceTimeline',
    summary: 'Get the timeline of a trace',
    description: 'Returns the spans of a trace on tracks, by start time.',
    tag: TAG,
    permission: 'traces:read',
    resource: { type: 'trace', param: 'trace_id' },
    params: traceParams,
    response: timeline,
    meta: treeMeta,
    errors: ['trace_not_found'],
    handler: ({ org_id, params, signal }) => readTimelineOf(deps, org_id, params.trace_id, signal),
  });
}

function exportTraceRoute({ clickhouse, exporterOf, written }: TracesDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/traces/:trace_id/export',
    operation_id: 'exportTrace',
    summary: 'Export a trace',
    description: `Returns all spans of a trace as a file, streamed in the requested format. ${WRITTEN_AS_READ}`,
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
