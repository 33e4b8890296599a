// What a KV bucket holds under a filter, without the values: for counting.
import type { KV } from '@nats-io/kv';

/** Lists the entries of the keys that match, marks of deletions too; each has its length and its time, and no value. */
export function kvHeaders(kv: KV, filter: string): ReturnType<KV['history']> {
  // The client passes this option on; its type leaves it out.
  const asked: { key: string; headers_only: boolean } = { key: filter, headers_only: true };
  return kv.history(asked);
}
