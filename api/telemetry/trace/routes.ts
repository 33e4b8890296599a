// Routes of one trace: its item, its outline, one span with its texts, what its texts say, and its
// conversation.
import { z } from 'zod';
import type { Store } from '../../../sql/client/shards.ts';
import { defineRoute, type Route, STREAMED } from '../../http/route.ts';
import { traceParams } from '../../http/trace_items.ts';
import { WRITTEN_AS_READ } from '../../http/written_answers.ts';
import { readConversation } from './conversation.ts';
import { conversation, conversationMeta, conversationQuery } from './conversation_schema.ts';
import type { TraceDeps } from './deps.ts';
import { findMatches } from './matches.ts';
import { readTraceOutline } from './outline.ts';
import {
  match,
  MATCHES_MAX,
  matchesMeta,
  matchesQuery,
  outline,
  outlineMeta,
  OUTLINE_SPANS_MAX,
  spanDetail,
  spanParams,
  textParams,
  traceDetail,
} from './schema.ts';
import { readSpanDetail } from './span.ts';
import { streamText } from './text.ts';
import { readTraceDetail } from './trace_item.ts';

const TAG = 'Traces';
/** Dependencies of the routes, which find the shard of a trace themselves. */
export type TraceRouteDeps = Omit<TraceDeps, 'clickhouse'> & Pick<Store, 'ofTrace'>;

/** Returns the dependencies of the reads of one trace. */
const at = ({ ofTrace, ...deps }: TraceRouteDeps, org_id: string, trace_id: string): TraceDeps => ({
  ...deps,
  clickhouse: ofTrace(org_id, trace_id),
});

const RESOURCE = { type: 'trace', param: 'trace_id' } as const;

export function oneTraceRoutes(deps: TraceRouteDeps): Route[] {
  return [
    getTraceRoute(deps),
    getTraceOutlineRoute(deps),
    getSpanRoute(deps),
    getSpanTextRoute(deps),
    findInTraceRoute(deps),
    getTraceConversationRoute(deps),
  ];
}

function getTraceRoute(deps: TraceRouteDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id',
    operation_id: 'getTrace',
    summary: 'Get a trace',
    description: 'Returns a trace as the list of traces has it, with its models, and whether it is complete.',
    tag: TAG,
    permission: 'traces:read',
    resource: RESOURCE,
    params: traceParams,
    response: traceDetail,
    errors: ['trace_not_found'],
    handler: ({ org_id, params, signal }) =>
      readTraceDetail(at(deps, org_id, params.trace_id), org_id, params.trace_id, signal),
  });
}

function getTraceOutlineRoute(deps: TraceRouteDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id/outline',
    operation_id: 'getTraceOutline',
    summary: 'Get the outline of a trace',
    description: `Returns all spans of a trace without texts and attributes, as columns instead of rows, at most the first ${OUTLINE_SPANS_MAX.toLocaleString('en')}. Export a larger trace to get all of its spans.`,
    tag: TAG,
    permission: 'traces:read',
    resource: RESOURCE,
    params: traceParams,
    response: outline,
    meta: outlineMeta,
    errors: ['trace_not_found'],
    handler: ({ org_id, params, signal }) =>
      readTraceOutline(at(deps, org_id, params.trace_id), org_id, params.trace_id, signal),
  });
}

function getSpanRoute(deps: TraceRouteDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id/spans/:span_id',
    operation_id: 'getSpan',
    summary: 'Get a span',
    description:
      'Returns one span of a trace with its texts, attributes, events, links and scores. If several spans of the trace have the id, the one that started first is returned.',
    tag: TAG,
    permission: 'traces:read',
    resource: RESOURCE,
    params: spanParams,
    response: spanDetail,
    errors: ['trace_not_found', 'span_not_found'],
    handler: ({ org_id, params, signal }) => readSpanDetail(at(deps, org_id, params.trace_id), org_id, params, signal),
  });
}

function getSpanTextRoute(deps: TraceRouteDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id/spans/:span_id/texts/:text',
    operation_id: 'getSpanText',
    summary: 'Get a text of a span',
    description: `Returns the whole prompt or response of a span as a file of plain text, however long it is. ${WRITTEN_AS_READ}`,
    tag: TAG,
    permission: 'traces:read',
    resource: RESOURCE,
    params: textParams,
    response: z.string(),
    media: ['text/plain'],
    errors: ['trace_not_found', 'span_not_found', 'text_not_found'],
    handler: async ({ org_id, params, res, signal }) => {
      await deps.written.run(org_id, signal, () =>
        streamText(at(deps, org_id, params.trace_id), org_id, params, res, signal),
      );
      return STREAMED;
    },
  });
}

function findInTraceRoute(deps: TraceRouteDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id/matches',
    operation_id: 'findInTrace',
    summary: 'Search the texts of a trace',
    description: `Returns the prompts and responses of a trace that contain words or phrases, in the order of their spans' start, each with the part around its first match; at most ${MATCHES_MAX}.`,
    tag: TAG,
    permission: 'traces:read',
    resource: RESOURCE,
    params: traceParams,
    query: matchesQuery,
    response: z.array(match),
    meta: matchesMeta,
    errors: ['trace_not_found'],
    handler: ({ org_id, params, query, signal }) =>
      findMatches(at(deps, org_id, params.trace_id), org_id, { trace_id: params.trace_id, search: query.q }, signal),
  });
}

function getTraceConversationRoute(deps: TraceRouteDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/traces/:trace_id/conversation',
    operation_id: 'getTraceConversation',
    summary: 'Get the conversation of a trace',
    description:
      'Returns the model calls of a trace as one dialogue without repeats. Each step has the messages that are new against the earlier call that it continues, those that changed or were dropped since, the answer, and the tool calls with their results. A page holds up to 24 MiB of texts, and compares its calls with each other and with the newest calls before it, up to 8 MiB of texts.',
    tag: TAG,
    permission: 'traces:read',
    resource: RESOURCE,
    params: traceParams,
    query: conversationQuery,
    response: conversation,
    meta: conversationMeta,
    errors: ['trace_not_found'],
    handler: ({ org_id, params, query, signal }) =>
      readConversation(
        at(deps, org_id, params.trace_id),
        org_id,
        { trace_id: params.trace_id, cursor: query.cursor },
        signal,
      ),
  });
}
