// The result of a reader of either encoding. Types only.
import type { ReadGroup, ReadSpan } from './normal.ts';

/**
 * The spans of one scope of one resource, each read when it is asked for. Each resource first
 * yields a group of its own without a scope.
 */
export interface SpanGroup {
  resource: ReadGroup;
  scope: (ReadGroup & { name: string; version: string }) | null;
  /**
   * @throws SpanRejected for a span that cannot be accepted; InvalidExport where the body turns out
   * to be no export
   */
  spans: Iterable<() => ReadSpan>;
}
