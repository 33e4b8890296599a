// The result of a reader of either encoding. Types only.
import type { ReadGroup } from './normal.ts';

/**
 * The records of one scope of one resource, each read when it is asked for. Each resource first
 * yields a group of its own without a scope.
 */
export interface RecordGroup<T> {
  resource: ReadGroup;
  scope: (ReadGroup & { name: string; version: string }) | null;
  /**
   * @throws SpanRejected for a record that cannot be accepted; InvalidExport where the body turns
   * out to be no export
   */
  records: Iterable<() => T>;
}
