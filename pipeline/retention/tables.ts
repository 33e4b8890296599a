// Tables and the days of a policy that they follow, as data. Rows of telemetry follow telemetry;
// rows of money follow usage, which outlives spans. Absent: span_corrections and landing_fences
// (temporary, or of no organization), and rows that the TTL of a table deletes sooner.
import { INACTIVE_DAYS } from '../domain/agents/agent_life.ts';
import type { RowKey } from '../../sql/stores/retention.ts';
import type { RetainedKind } from '../domain/traces/retention.ts';

export interface DeletedTable {
  table: string;
  /** Time column by which rows are due. */
  column: string;
  kept: RetainedKind;
  /**
   * True for rows of traces, which are due only once no span of theirs started after the cutoff.
   */
  withSpans?: true;
  /** Minimum days of retention, even if the policy says fewer. */
  daysMin?: number;
  /**
   * Key of rows that replace each other. They are deleted together, so that an older row does not
   * reappear when a newer one is deleted.
   */
  key?: RowKey;
}

/**
 * Tables in the order in which rows are deleted. A trace leaves the list before its spans are
 * deleted, so that every listed trace can be read, even after a crash between two tables.
 * trace_lookup comes after both, because it selects the rows of `traces`.
 */
export const DELETED_TABLES: readonly DeletedTable[] = [
  // Both rows of a pair have the same times, so sums of signs stay correct.
  { table: 'traces', column: 'started_at', kept: 'telemetry', withSpans: true },
  { table: 'span_texts', column: 'started_at', kept: 'telemetry' },
  { table: 'spans', column: 'started_at', kept: 'telemetry' },
  // Each row of a trace bounds a part of its spans; the part that this row bounds is deleted by
  // then.
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
  // Drift detection treats an agent without a row as one without events, so a row must outlast its
  // threshold.
  { table: 'agent_activity', column: 'last_seen_at', kept: 'usage_events', daysMin: INACTIVE_DAYS + 1 },
  { table: 'anomalies', column: 'day', kept: 'usage_events' },
  { table: 'audit_log', column: 'created_at', kept: 'audit_log' },
];

export interface ClearedColumn {
  table: string;
  column: string;
  /** Value after the reset: the default of the column. */
  empty: string;
  time: string;
  kept: RetainedKind;
}

/**
 * Columns that are reset while their rows stay. Errors often contain what a model answered, so they
 * follow the texts.
 */
export const CLEARED_COLUMNS: readonly ClearedColumn[] = [
  { table: 'spans', column: 'attributes', empty: '{}', time: 'started_at', kept: 'metadata' },
  { table: 'incident_traces', column: 'sample', empty: '', time: 'at', kept: 'texts' },
  { table: 'incidents', column: 'sample', empty: '', time: 'last_trace_at', kept: 'texts' },
];
