// Items of annotation queues in KV. An item names traces and may hold scores that wait to be sent,
// so an erasure deletes the items of its traces before the rows.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { annotationRecord } from '../../schemas/records/annotation.ts';
import { orgKey } from '../../schemas/records/org.ts';

/** Deletes the items of an organization's queues that have one of the traces. */
export async function deleteAnnotationItems(log: Log, org_id: string, trace_ids: readonly string[]): Promise<void> {
  const kv = await log.bucket('annotations');
  const erased = new Set(trace_ids);
  // Queues have keys of two tokens, items of three.
  const keys: string[] = [];
  for await (const key of await kv.keys(`${orgKey(org_id)}.*.*`)) keys.push(key);
  for (const key of keys) {
    const entry = await kv.get(key);
    if (entry?.operation !== 'PUT') continue;
    const record = annotationRecord.parse(JSON.parse(entry.string()));
    if (record.kind !== 'item' || !record.traces.some(({ trace_id }) => erased.has(trace_id))) continue;
    // The marker of a purge leaves no earlier value behind.
    await kv.purge(key);
  }
}
