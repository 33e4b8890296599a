// Lists the entries of a KV bucket under a filter without their values, for counting.
import type { KV } from '@nats-io/kv';

/**
 * Lists the entries of the keys that match, including delete markers. Each has its length and its
 * time, and no value.
 */
export function kvHeaders(kv: KV, filter: string): ReturnType<KV['history']> {
  // The client passes this option on, although its type does not declare it.
  const asked: { key: string; headers_only: boolean } = { key: filter, headers_only: true };
  return kv.history(asked);
}
