// Records of monitors in KV: definitions, which the API writes and the workers read, and states, which
// the job `monitors` writes and the API shows.
import { z } from 'zod';
import { orgKey } from './org.ts';

export const MONITOR_STATES = ['ok', 'alerting', 'no_data'] as const;
/** Why a group alerts no longer. */
export const MONITOR_RESOLUTIONS = ['ok', 'no_data', 'changed', 'disabled', 'deleted'] as const;
export const MONITOR_SEVERITIES = ['info', 'warning', 'critical'] as const;

const filterValue = z.union([z.string(), z.number(), z.boolean()]);
const monitorQuery = z.object({
  view: z.string(),
  measures: z.array(z.object({ measure: z.string(), agg: z.string() })).length(1),
  filters: z.array(
    z.object({ field: z.string(), op: z.string(), value: z.union([filterValue, z.array(filterValue)]) }),
  ),
});

/** One limit: the monitor alerts when the value is above it, or below it. */
export const monitorThreshold = z.union([z.strictObject({ above: z.number() }), z.strictObject({ below: z.number() })]);

const channel = z.discriminatedUnion('type', [
  z.object({ type: z.literal('webhook'), webhook_id: z.string().optional() }),
  z.object({ type: z.literal('email'), to: z.array(z.string()) }),
]);

export const monitorRecord = z.object({
  org_id: z.string(),
  monitor_id: z.string(),
  name: z.string(),
  query: monitorQuery,
  /** At most one dimension of the view. */
  group_by: z.array(z.string()).max(1),
  window_minutes: z.int(),
  threshold: monitorThreshold,
  /** How long the value must be past the threshold before the monitor alerts. */
  for_minutes: z.int(),
  channels: z.array(channel),
  severity: z.enum(MONITOR_SEVERITIES),
  enabled: z.boolean(),
  /** Until then nobody is notified of new alerts; null when the monitor is not muted. */
  muted_until: z.iso.datetime().nullable().default(null),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
});
export type MonitorRecord = z.infer<typeof monitorRecord>;

const groupState = z.object({
  /** Value of the dimension; null for a monitor without groups. */
  group: z.string().nullable(),
  state: z.enum(MONITOR_STATES),
  value: z.number().nullable(),
  /** Start of the present state, milliseconds since the epoch. */
  since_ms: z.int(),
  /** Evaluation at which the value was first past the threshold; null while it is not. */
  past_ms: z.int().nullable(),
  /** Last evaluation that found data. */
  seen_ms: z.int(),
  /** False while a group alerts that a muted monitor did not report. */
  notified: z.boolean().default(true),
});
export type MonitorGroupState = z.infer<typeof groupState>;

const change = z.object({
  event: z.enum(['monitor.alerting', 'monitor.resolved']),
  /** Dimension and value; empty without groups. */
  group: z.record(z.string(), z.string()),
  value: z.number().nullable(),
  /** Null for an alert. */
  reason: z.enum(MONITOR_RESOLUTIONS).nullable(),
  at: z.iso.datetime(),
  /** False for a change that a muted monitor did not report. */
  notified: z.boolean(),
});
export type MonitorChange = z.infer<typeof change>;

/** A change that receivers are to be notified of. */
const notice = z.object({
  event_id: z.string(),
  event: z.enum(['monitor.alerting', 'monitor.resolved']),
  payload: z.record(z.string(), z.unknown()),
  /** Milliseconds since the epoch. */
  at_ms: z.int(),
});
export type MonitorNotice = z.infer<typeof notice>;

export const monitorState = z.object({
  org_id: z.string(),
  monitor_id: z.string(),
  /** Definition at the last evaluation: notices about a deleted monitor need it. */
  monitor: monitorRecord,
  evaluated_at: z.iso.datetime().nullable(),
  /** Why the monitor cannot be evaluated; null when it can. */
  error: z.string().nullable(),
  /** True when there were more groups than a monitor evaluates. */
  truncated: z.boolean(),
  groups: z.array(groupState),
  /** Notices so far. The number makes the ids of events. */
  changes: z.int(),
  /** The newest changes, the oldest first. */
  history: z.array(change).default([]),
  /** Notices that are not known to be sent. They are stored with the change, so that none is lost. */
  outbox: z.array(notice),
});
export type MonitorState = z.infer<typeof monitorState>;

/** Returns the KV key of a monitor, and of its state. */
export const monitorKey = (org_id: string, monitor_id: string): string => `${orgKey(org_id)}.${monitor_id}`;
