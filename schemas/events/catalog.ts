// The event catalog: every platform event that an endpoint can subscribe to, with the shape of its
// payload. Subscriptions are checked against it, and the OpenAPI document is generated from it.
import { z } from 'zod';
import { auditActor, auditTarget } from '../records/audit.ts';
import { MONITOR_RESOLUTIONS, monitorThreshold } from '../records/monitor.ts';

const time = z.iso.datetime();
const severity = z.enum(['info', 'warning', 'critical']);
const outcome = z.enum(['success', 'error', 'timeout']);
const limit = z.number().nullable().describe('null when none is set');
const tokens = z.int().min(0);

/** Returns the payload of an event: its name and its own fields. */
const payload = <Name extends string, Shape extends z.ZodRawShape>(event: Name, shape: Shape) =>
  z.object({ event: z.literal(event), ...shape });

const audited = <Name extends string>(event: Name) =>
  payload(event, {
    org_id: z.string(),
    audit_id: z.string().describe('Id of the record in the audit log'),
    actor: auditActor,
    target: auditTarget,
    changes: z.record(z.string(), z.unknown()),
    created_at: time,
  });

const incident = {
  incident_id: z.string(),
  cluster_id: z.string(),
  severity: z.enum(['warning', 'critical']),
  trace_count: z.int().min(1),
  first_trace_at: time,
};

const monitor = {
  org_id: z.string(),
  monitor_id: z.string(),
  name: z.string(),
  severity,
  group: z.record(z.string(), z.string()).describe('Dimension and value of the group; empty without a group'),
  value: z.number().nullable().describe('null when there is no data'),
  threshold: monitorThreshold,
  window_minutes: z.int(),
  for_minutes: z.int(),
};

/** Events by name: when each fires, and its payload. */
export const EVENT_CATALOG = {
  'trace.started': {
    fires: 'The first event of a new trace arrived',
    payload: payload('trace.started', {
      trace_id: z.string(),
      agent_id: z.string().nullable().describe('null when the first event names none'),
      started_at: time,
      org_id: z.string(),
    }),
  },
  'trace.completed': {
    fires: 'A trace is complete',
    payload: payload('trace.completed', {
      trace_id: z.string(),
      outcome,
      duration_ms: z.int().min(0),
      input_tokens: tokens,
      output_tokens: tokens,
      cost_usd: z.number(),
      judge_scores: z.record(z.string(), z.number()).describe('Scores of deterministic judges, by name'),
    }),
  },
  'judge.threshold_breach': {
    fires:
      'A live score is below threshold.warn of its judge (below threshold.pass when no warn is set). Scores of evals do not fire it.',
    payload: payload('judge.threshold_breach', {
      judge_id: z.string(),
      trace_id: z.string(),
      score: z.number(),
      threshold: z.number(),
      severity,
    }),
  },
  'judge.regression': {
    fires: 'The mean score of an eval dropped below that of the previous run',
    payload: payload('judge.regression', {
      judge_id: z.string(),
      previous_mean: z.number(),
      current_mean: z.number(),
      drop: z.number(),
      threshold: z.number(),
    }),
  },
  'cost.threshold_breach': {
    fires: 'Use of a budget crossed a configured threshold, or a soft limit at which none is configured',
    payload: payload('cost.threshold_breach', {
      resource: z.string(),
      percent: z.number().describe('The configured threshold, or the percentage at which the soft limit stands'),
      used: z.number(),
      soft_limit: limit,
      hard_limit: limit,
      severity,
    }),
  },
  'budget.threshold_breach': {
    fires:
      'Use of a budget crossed a threshold; sent together with cost.threshold_breach on the webhook channel of budget alerts',
    payload: payload('budget.threshold_breach', {
      org_id: z.string(),
      resource: z.string(),
      percent: z.number().describe('The configured threshold, or the percentage at which the soft limit stands'),
      used: z.number(),
      soft_limit: limit,
      hard_limit: limit,
      severity,
      period_start: time,
      request_id: z.string(),
    }),
  },
  'cost.anomaly': {
    fires: 'The cost of a day is an outlier',
    payload: payload('cost.anomaly', {
      z: z.number(),
      expected_usd: z.number(),
      actual_usd: z.number(),
      attributed_to: z.object({ model: z.string().nullable(), agent_id: z.string().nullable() }),
    }),
  },
  'cost.forecast_breach': {
    fires:
      'A resource is forecast to reach its hard limit before its period ends; fires once for each period and resource',
    payload: payload('cost.forecast_breach', {
      org_id: z.string(),
      resource: z.string(),
      predicted: z.number(),
      threshold: z.number().describe('The hard limit'),
      date: z.iso.date().describe('Date on which the hard limit is forecast to be reached'),
      severity,
    }),
  },
  'budget.hard_exceeded': {
    fires: 'A hard limit was reached',
    payload: payload('budget.hard_exceeded', {
      org_id: z.string(),
      resource: z.string(),
      used: z.number(),
      hard_limit: z.number(),
      agent_id: z.string().optional().describe('Agent whose own limit it is; absent for a limit of the organization'),
      period_start: time,
    }),
  },
  'incident.created': {
    fires: 'A new cluster of failing traces was found',
    payload: payload('incident.created', incident),
  },
  'incident.resolved': {
    fires: 'An incident was resolved, automatically or by a person',
    payload: payload('incident.resolved', {
      ...incident,
      resolved_at: time,
      resolution: z.enum(['auto', 'manual']),
    }),
  },
  'monitor.alerting': {
    fires: 'The value of a monitor, or of one of its groups, is past its threshold; fires once for each change',
    payload: payload('monitor.alerting', { ...monitor, alerting_at: time }),
  },
  'monitor.resolved': {
    fires: 'A monitor, or one of its groups, alerts no longer; fires once for each change',
    payload: payload('monitor.resolved', {
      ...monitor,
      alerting_at: time,
      resolved_at: time,
      reason: z
        .enum(MONITOR_RESOLUTIONS)
        .describe('The value is back, there is no data, or the monitor was changed, disabled or deleted'),
    }),
  },
  'agent.registered': {
    fires: 'A new agent was registered',
    payload: payload('agent.registered', {
      agent_id: z.string(),
      framework: z.string().nullable(),
      version: z.string().nullable(),
    }),
  },
  'agent.deprecated': {
    fires: 'Drift detection archived an agent',
    payload: payload('agent.deprecated', { agent_id: z.string(), drift_type: z.string(), reason: z.string() }),
  },
  'prompt.created': {
    fires: 'A version of a prompt was created',
    payload: payload('prompt.created', {
      org_id: z.string(),
      name: z.string(),
      version: z.string(),
      model: z.string().nullable().describe('null when the version names none'),
      created_at: time,
    }),
  },
  'prompt.labeled': {
    fires: 'A label of a prompt was created, or moved to another version',
    payload: payload('prompt.labeled', {
      org_id: z.string(),
      name: z.string(),
      label: z.string(),
      version: z.string(),
      previous_version: z.string().nullable().describe('null for a new label'),
      created_at: time,
    }),
  },
  'pii.match': {
    fires: 'Personal data was redacted; fires for one redaction in 1000',
    payload: payload('pii.match', {
      org_id: z.string(),
      trace_id: z.string(),
      span_id: z.string(),
      kinds: z.array(z.string()).describe('Kinds of personal data, or labels of own patterns; never the data itself'),
    }),
  },
  'audit.api_key.create': { fires: 'An API key was created', payload: audited('audit.api_key.create') },
  'audit.api_key.revoke': { fires: 'An API key was revoked', payload: audited('audit.api_key.revoke') },
  'audit.member.invite': { fires: 'A member was invited', payload: audited('audit.member.invite') },
  'audit.member.remove': { fires: 'A member was removed', payload: audited('audit.member.remove') },
} as const satisfies Record<string, { fires: string; payload: z.ZodType }>;
export type EventName = keyof typeof EVENT_CATALOG;

/**
 * Name of the event that is sent on request to one endpoint, whatever it subscribes to. No endpoint
 * can subscribe to it.
 */
export const TEST_EVENT = 'webhook.test' as const;
export const testPayload = payload(TEST_EVENT, { org_id: z.string(), webhook_id: z.string(), sent_at: time });

/** Other spellings that a subscription may use. */
const ALIASES: Readonly<Record<string, EventName>> = { cost_anomaly: 'cost.anomaly' };

/** Returns the event of a name in any of its spellings; null when there is none. */
export function eventNamed(name: string): EventName | null {
  if (Object.hasOwn(EVENT_CATALOG, name)) return name as EventName;
  return Object.hasOwn(ALIASES, name) ? (ALIASES[name] ?? null) : null;
}
