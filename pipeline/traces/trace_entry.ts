// The records of the traces of a partition in memory, and of the rows made of them.
import type { Cells } from '../../sql/client/native_block.ts';
import type { TraceState } from '../domain/traces/trace_state.ts';
import type { TraceCells } from '../landing/row_encoders.ts';

/** A wire row of the traces table. Both rows of a pair carry the version of the newer one. */
export interface TraceRow {
  wire: Cells;
  org_id: string;
  trace_id: string;
  version: number;
}

/** A trace in memory. */
export interface Entry {
  key: string;
  state: TraceState;
  /**
   * Version of the row that was restored: it includes the messages up to this one. 0 for a trace
   * that began in this worker.
   */
  restored_version: number;
  /** log_seq of the newest message included in `state`. */
  version: number;
  /** The row returned last; null before the first. */
  cells: TraceCells | null;
  /** received_at of the newest event, in milliseconds. */
  heard_at: number;
  open: boolean;
  /** True while tail sampling buffers its events: the trace gets no row yet. */
  buffered: boolean;
}
