// Dependencies that the reads of one trace share.
import type { ClickHouse } from '../../../sql/client/client.ts';
import { ApiError } from '../../http/errors.ts';
import type { ScoreItem } from '../../http/trace_items.ts';
import type { WrittenAnswers } from '../../http/written_answers.ts';
import type { CompleteRule } from './complete.ts';
import type { TraceRange } from './store.ts';

export interface TraceDeps {
  /** Reads the shard of the trace. */
  clickhouse: ClickHouse;
  written: WrittenAnswers;
  /** @throws ApiError trace_not_found, cross_org_access */
  locate: (org_id: string, trace_id: string, signal: AbortSignal) => Promise<TraceRange>;
  /** Returns the newest scores of a trace and of its spans. */
  scoresOf: (org_id: string, trace_id: string, signal: AbortSignal) => Promise<ScoreItem[]>;
  completeRule: CompleteRule;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export function traceNotFound(): ApiError {
  return new ApiError('trace_not_found', 'There is no trace with this id.');
}
