// One row on its way to a table, and the keys by which a row is found again.
import type { WireRow } from '../../sql/stores/landing_tables.ts';
import type { LoggedEvent, LogPosition } from '../stage.ts';

export interface LandingRow {
  wire: WireRow;
  partition: number;
  /**
   * Epoch under which the row was made. A worker that lost the partition and owns it again must not
   * write rows of its former epoch.
   */
  epoch: number;
  log_seq: number;
  /** Identifies the row within its table and partition: see rowKey and traceRowKey. */
  key: string;
  /** The event that the row was made of; null if several events share the row. */
  event: LoggedEvent | null;
}

/** Returns the key of an event within a batch. */
export const eventKey = ({ log_seq, log_index }: Pick<LogPosition, 'log_seq' | 'log_index'>): string =>
  `${log_seq}:${log_index}`;
/** Returns the key of a span's row, or of its text's, within its partition. */
export const rowKey = (logSeq: number, logIndex: number, sub: number): string => `${logSeq}:${logIndex}:${sub}`;
/** Returns the key of a trace's row. Both rows of a pair have the key of the new row. */
export const traceRowKey = (orgId: string, traceId: string, version: number): string =>
  `${orgId} ${traceId} ${version}`;
