// Request and message shapes of the live stream.
import { z } from 'zod';
import { EVENT_CATALOG } from '../../../schemas/events/catalog.ts';
import { EVAL_STATUSES } from '../../../schemas/records/eval.ts';
import { jobView } from '../../../schemas/records/job_record.ts';
import type { Permission } from '../../http/permissions.ts';
import { listParam } from '../../http/route.ts';
import { traceItem } from '../../http/trace_items.ts';

/** Topics with the permission that each needs besides traces:read. */
export const TOPICS = {
  traces: 'traces:read',
  incidents: 'traces:read',
  budgets: 'costs:read',
  evals: 'judges:read',
  jobs: 'jobs:read',
} as const satisfies Record<string, Permission>;
export type Topic = keyof typeof TOPICS;
const TOPIC_NAMES = Object.keys(TOPICS) as [Topic, ...Topic[]];

/** Maximum topics of one connection. */
const TOPICS_MAX = 16;
const TRACE_TOPIC = /^trace:.{1,128}$/;
const topicParam = z
  .string()
  .refine((topic) => (TOPIC_NAMES as readonly string[]).includes(topic) || TRACE_TOPIC.test(topic), {
    error: `must be one of ${TOPIC_NAMES.join(', ')}, or trace: and the id of a trace`,
  });

export const liveParams = {
  topics: listParam(topicParam)
    .pipe(
      z
        .array(topicParam)
        .min(1, { error: 'must name at least one topic' })
        .max(TOPICS_MAX, { error: `must name at most ${TOPICS_MAX} topics` }),
    )
    .describe(
      `Comma-separated: ${TOPIC_NAMES.join(', ')}, and trace:{trace_id} for single traces. At most ${TOPICS_MAX}`,
    ),
  org_id: z
    .string()
    .optional()
    .describe('Organization of the caller, for callers that cannot send the X-Org-Id header'),
};

/** Returns the shape of one message; the name of its event is part of the description. */
const message = <Shape extends z.ZodRawShape>(id: string, event: string, shape: Shape) =>
  z.object(shape).meta({ id, description: `Data of the event \`${event}\`` });

const liveTrace = traceItem.extend({ complete: z.boolean().describe('Whether the trace became complete just now') });

export const tracesMessage = message('LiveTraces', 'traces', {
  traces: z.array(liveTrace).describe('Traces that have started or become complete, newest first, at most 200'),
  dropped: z
    .int()
    .min(0)
    .describe('Number of further changes that this message leaves out. List the traces to see them'),
});
export type TracesMessage = z.infer<typeof tracesMessage>;
const traceMessage = message('LiveTrace', 'trace', { trace: liveTrace });
export const incidentMessage = message('LiveIncident', 'incident', {
  incident_id: z.string(),
  cluster_id: z.string(),
  status: z.enum(['open', 'resolved']),
  severity: z.enum(['warning', 'critical']),
  agent_id: z.string().nullable(),
  root_span_name: z.string().nullable(),
  error: z.string(),
  trace_count: z.int().describe('Number of traces when the incident was opened or resolved'),
  opened_at: z.iso.datetime(),
  resolved_at: z.iso.datetime().nullable(),
});
export type IncidentMessage = z.infer<typeof incidentMessage>;
const budgetMessage = z
  .union([
    EVENT_CATALOG['cost.threshold_breach'].payload,
    EVENT_CATALOG['budget.hard_exceeded'].payload,
    EVENT_CATALOG['cost.forecast_breach'].payload,
    EVENT_CATALOG['cost.anomaly'].payload,
  ])
  .meta({ id: 'LiveBudget', description: 'Data of the event `budget`: the payload of a platform event' });
/** Platform events that the topic budgets reports. */
export const BUDGET_EVENTS: ReadonlySet<string> = new Set([
  'cost.threshold_breach',
  'budget.hard_exceeded',
  'cost.forecast_breach',
  'cost.anomaly',
]);
export const evalMessage = message('LiveEval', 'eval', {
  eval_id: z.string(),
  judge_id: z.string(),
  status: z.enum(EVAL_STATUSES),
  progress: z.object({ done: z.int().min(0), total: z.int().min(0) }),
  ended_at: z.iso.datetime().nullable(),
});
export type EvalMessage = z.infer<typeof evalMessage>;
const jobMessage = jobView.meta({ id: 'LiveJob', description: 'Data of the event `job`' });
const readyMessage = message('LiveReady', 'ready', { topics: z.array(z.string()) });
const resyncMessage = message('LiveResync', 'resync', {
  reason: z
    .enum(['lost', 'overflow'])
    .describe('lost: the service was cut off from its log. overflow: too many changes'),
});
const byeMessage = message('LiveBye', 'bye', {
  reason: z
    .enum(['drain', 'renew', 'revoked'])
    .describe('drain: the process shuts down. renew: the connection is old. revoked: the caller lost the permission'),
});

export const liveMessage = z.union([
  tracesMessage,
  traceMessage,
  incidentMessage,
  budgetMessage,
  evalMessage,
  jobMessage,
  readyMessage,
  resyncMessage,
  byeMessage,
]);

/** Data of each event of the stream. */
export interface LiveEvents {
  traces: TracesMessage;
  trace: z.infer<typeof traceMessage>;
  incident: IncidentMessage;
  budget: unknown;
  eval: EvalMessage;
  job: z.infer<typeof jobMessage>;
  ready: z.infer<typeof readyMessage>;
  resync: z.infer<typeof resyncMessage>;
  bye: z.infer<typeof byeMessage>;
}
