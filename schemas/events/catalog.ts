// The event catalog: every platform event that an endpoint can subscribe to, with the shape of what is delivered. The one
// place that says so: subscriptions are checked against it and the OpenAPI document is made from it.
import { z } from 'zod';
import { auditActor, auditTarget } from '../records/audit.ts';

const time = z.iso.datetime();
const severity = z.enum(['info', 'warning', 'critical']);
const outcome = z.enum(['success', 'error', 'timeout']);
const limit = z.number().nullable().describe('null where none is set');
const tokens = z.int().min(0);

/** What is delivered: the name, and the fields of this kind. */
const payload = <Name extends string, Shape extends z.ZodRawShape>(event: Name, shape: Shape) =>
  z.object({ event: z.literal(event), ...shape });

const audited = <Name extends string>(event: Name) =>
  payload(event, {
    org_id: z.string(),
    audit_id: z.string().describe('Of the record in the audit log'),
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

/** By name: when it fires, and what is delivered. */
export const EVENT_CATALOG = {
  'trace.started': {
    fires: 'The first event of a new trace has come',
    payload: payload('trace.started', {
      trace_id: z.string(),
      agent_id: z.string().nullable().describe('null where the first event names none'),
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
      'A score of live traffic lies under threshold.warn of its judge (under threshold.pass where no warn is set); evals tell none',
    payload: payload('judge.threshold_breach', {
      judge_id: z.string(),
      trace_id: z.string(),
      score: z.number(),
      threshold: z.number(),
      severity,
    }),
  },
  'judge.regression': {
    fires: 'The mean score of an eval has dropped against the run before it',
    payload: payload('judge.regression', {
      judge_id: z.string(),
      previous_mean: z.number(),
      current_mean: z.number(),
      drop: z.number(),
      threshold: z.number(),
    }),
  },
  'cost.threshold_breach': {
    fires: 'A budget crosses a configured threshold, or a soft limit at which none is configured',
    payload: payload('cost.threshold_breach', {
      resource: z.string(),
      percent: z.number().describe('The configured one, or where the soft limit stands'),
      used: z.number(),
      soft_limit: limit,
      hard_limit: limit,
      severity,
    }),
  },
  'budget.threshold_breach': {
    fires: 'With cost.threshold_breach, as the webhook channel of budget alerts tells it',
    payload: payload('budget.threshold_breach', {
      org_id: z.string(),
      resource: z.string(),
      percent: z.number().describe('The configured one, or where the soft limit stands'),
      used: z.number(),
      soft_limit: limit,
      hard_limit: limit,
      severity,
      period_start: time,
      request_id: z.string(),
    }),
  },
  'cost.anomaly': {
    fires: "A day's cost is an outlier",
    payload: payload('cost.anomaly', {
      z: z.number(),
      expected_usd: z.number(),
      actual_usd: z.number(),
      attributed_to: z.object({ model: z.string().nullable(), agent_id: z.string().nullable() }),
    }),
  },
  'cost.forecast_breach': {
    fires: 'A resource is forecast to reach its hard limit before its period ends; once a period and resource',
    payload: payload('cost.forecast_breach', {
      org_id: z.string(),
      resource: z.string(),
      predicted: z.number(),
      threshold: z.number().describe('The hard limit'),
      date: z.iso.date().describe('When it is reached'),
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
      agent_id: z.string().optional().describe("Where the limit is an agent's own"),
      period_start: time,
    }),
  },
  'incident.created': {
    fires: 'A new cluster of failing traces was found',
    payload: payload('incident.created', incident),
  },
  'incident.resolved': {
    fires: 'An incident was resolved, by itself or by hand',
    payload: payload('incident.resolved', {
      ...incident,
      resolved_at: time,
      resolution: z.enum(['auto', 'manual']),
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
    fires: 'Drift detection has given an agent up',
    payload: payload('agent.deprecated', { agent_id: z.string(), drift_type: z.string(), reason: z.string() }),
  },
  'pii.match': {
    fires: 'Personal data was redacted; one redaction in 1000 is told',
    payload: payload('pii.match', {
      org_id: z.string(),
      trace_id: z.string(),
      span_id: z.string(),
      kinds: z.array(z.string()).describe('Kinds that were found, or labels of own patterns; never what was found'),
    }),
  },
  'audit.api_key.create': { fires: 'An API key was made', payload: audited('audit.api_key.create') },
  'audit.api_key.revoke': { fires: 'An API key was revoked', payload: audited('audit.api_key.revoke') },
  'audit.member.invite': { fires: 'A member was invited', payload: audited('audit.member.invite') },
  'audit.member.remove': { fires: 'A member was removed', payload: audited('audit.member.remove') },
} as const satisfies Record<string, { fires: string; payload: z.ZodType }>;
export type EventName = keyof typeof EVENT_CATALOG;

/** Sent on request to one endpoint, whatever it subscribes to; nothing subscribes to it. */
export const TEST_EVENT = 'webhook.test' as const;
export const testPayload = payload(TEST_EVENT, { org_id: z.string(), webhook_id: z.string(), sent_at: time });

/** Other spellings that a subscription may use. */
const ALIASES: Readonly<Record<string, EventName>> = { cost_anomaly: 'cost.anomaly' };

/** The event of this name, by whichever of its spellings; null for none. */
export function eventNamed(name: string): EventName | null {
  if (Object.hasOwn(EVENT_CATALOG, name)) return name as EventName;
  return Object.hasOwn(ALIASES, name) ? (ALIASES[name] ?? null) : null;
}
