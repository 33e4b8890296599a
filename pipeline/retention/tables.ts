// Which table follows which days of a policy, as data. What a table holds of telemetry goes with telemetry; what it holds of money with
// usage, which outlives the spans. Not here: span_corrections and landing_fences (gone or of no org), and what its own TTL takes away sooner.
import { INACTIVE_DAYS } from '../domain/agents/agent_life.ts';
import type { RowKey } from '../../sql/stores/retention.ts';
import type { Kept } from '../domain/traces/retention.ts';

export interface DeletedTable {
  table: string;
  /** Column of time by which rows are due. */
  column: string;
  kept: Kept;
  /** Rows of traces: due only once no span of theirs is left that began after the cutoff. */
  withSpans?: true;
  /** Kept for so many days at least, however few the policy names. */
  daysMin?: number;
  /** Rows by a key, where rows replace each other and one must not come back with what replaced it gone. */
  key?: RowKey;
}

/**
 * Rows that are deleted, in this order. A trace leaves the list before its spans go, so that every trace that is listed can be read,
 * also when a run is killed between two tables. trace_lookup goes after both: the rows of `traces` are chosen by it.
 */
export const DELETED_TABLES: readonly DeletedTable[] = [
  // Both rows of a pair have the same times, so sums of signs stay right.
  { table: 'traces', column: 'started_at', kept: 'telemetry', withSpans: true },
  { table: 'span_texts', column: 'started_at', kept: 'telemetry' },
  { table: 'spans', column: 'started_at', kept: 'telemetry' },
  // A row of a trace that goes on later is a part of its bounds; what it bounds is gone.
  { table: 'trace_lookup', column: 'last_at', kept: 'telemetry' },
  { table: 'incident_traces', column: 'at', kept: 'telemetry' },
  {
    table: 'incidents',
    column: 'resolved_at',
    kept: 'telemetry',
    key: { column: 'incident_id', where: "status = 'resolved'" },
  },
  { table: 'webhook_deliveries', column: 'at', kept: 'telemetry' },
  { table: 'judge_scores', column: 'scored_at', kept: 'judge_scores' },
  { table: 'user_scores', column: 'created_at', kept: 'judge_scores' },
  { table: 'usage_events', column: 'hour', kept: 'usage_events' },
  // Drift detection takes an agent of which nothing is known for one of which nothing was heard.
  { table: 'agent_activity', column: 'last_seen_at', kept: 'usage_events', daysMin: INACTIVE_DAYS + 1 },
  { table: 'anomalies', column: 'day', kept: 'usage_events' },
  { table: 'audit_log', column: 'created_at', kept: 'audit_log' },
];

export interface ClearedColumn {
  table: string;
  column: string;
  /** What it holds then: the default of the column. */
  empty: string;
  time: string;
  kept: Kept;
}

/** Columns that are emptied while their rows stay. Errors are commonly what a model answered, so they go with the texts. */
export const CLEARED_COLUMNS: readonly ClearedColumn[] = [
  { table: 'spans', column: 'attributes', empty: '{}', time: 'started_at', kept: 'metadata' },
  { table: 'incident_traces', column: 'sample', empty: '', time: 'at', kept: 'texts' },
  { table: 'incidents', column: 'sample', empty: '', time: 'last_trace_at', kept: 'texts' },
];
