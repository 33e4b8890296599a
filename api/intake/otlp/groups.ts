// What a reader of either encoding gives. Types only.
import type { ReadGroup, ReadSpan } from './normal.ts';

/** The spans of one scope of one resource, each read when it is called for. A resource comes once by itself first, without a scope. */
export interface SpanGroup {
  resource: ReadGroup;
  scope: (ReadGroup & { name: string; version: string }) | null;
  /** @throws SpanRejected for one that cannot be taken; InvalidExport where the body turns out to be none */
  spans: Iterable<() => ReadSpan>;
}
