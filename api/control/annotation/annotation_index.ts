// Index over the bucket of annotations: the queues of an organization, the items of a queue in
// their order, sizes, and the items that the sweep has to look at. It follows the bucket's changes.
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { AnnotationRecord, ItemRecord, QueueRecord } from '../../../schemas/records/annotation.ts';
import { queueKey } from '../../../schemas/records/annotation.ts';

interface QueueItems {
  byKey: Map<string, ItemRecord>;
  /** Null after a change, until the items are read again. */
  ordered: readonly ItemRecord[] | null;
}

interface OrgSizes {
  items: number;
  bytes: number;
}

export class AnnotationIndex {
  readonly #queues = new Map<string, Map<string, QueueRecord>>();
  readonly #items = new Map<string, QueueItems>();
  readonly #sizes = new Map<string, OrgSizes>();
  /** Each record with its bytes, by key. */
  readonly #held = new Map<string, { record: AnnotationRecord; bytes: number }>();
  readonly #unsent = new Set<string>();

  constructor(bucket: Pick<WatchedBucket<AnnotationRecord>, 'entries' | 'onChange'>) {
    for (const [key, { value }] of bucket.entries()) this.#put(key, value);
    bucket.onChange((key, held) => {
      this.#drop(key);
      if (held !== null) this.#put(key, held.value);
    });
  }

  queues(org: string): Iterable<QueueRecord> {
    return this.#queues.get(org)?.values() ?? [];
  }

  items(queue: string): readonly ItemRecord[] {
    const held = this.#items.get(queue);
    if (held === undefined) return [];
    held.ordered ??= [...held.byKey.values()].sort(inOrder);
    return held.ordered;
  }

  sizes(org: string): OrgSizes {
    return this.#sizes.get(org) ?? { items: 0, bytes: 0 };
  }

  unsent(): ItemRecord[] {
    return [...this.#unsent].flatMap((key) => {
      const record = this.#held.get(key)?.record;
      return record?.kind === 'item' ? [record] : [];
    });
  }

  orphans(): ItemRecord[] {
    const gone = [...this.#items].filter(([queue]) => !this.#held.has(queue));
    return gone.flatMap(([, { byKey }]) => [...byKey.values()]);
  }

  #put(key: string, record: AnnotationRecord): void {
    const bytes = Buffer.byteLength(JSON.stringify(record));
    this.#held.set(key, { record, bytes });
    this.#count(key, { items: record.kind === 'item' ? 1 : 0, bytes });
    if (record.kind === 'queue') {
      const own = this.#queues.get(orgOf(key)) ?? new Map<string, QueueRecord>();
      this.#queues.set(orgOf(key), own.set(key, record));
      return;
    }
    const queue = queueKey(record.org_id, record.queue_id);
    const items = this.#items.get(queue) ?? { byKey: new Map<string, ItemRecord>(), ordered: null };
    items.byKey.set(key, record);
    items.ordered = null;
    this.#items.set(queue, items);
    if (record.outbox.length > 0) this.#unsent.add(key);
  }

  #drop(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    const { record, bytes } = held;
    this.#held.delete(key);
    this.#unsent.delete(key);
    this.#count(key, { items: record.kind === 'item' ? -1 : 0, bytes: -bytes });
    if (record.kind === 'queue') {
      const own = this.#queues.get(orgOf(key));
      own?.delete(key);
      if (own?.size === 0) this.#queues.delete(orgOf(key));
      return;
    }
    const queue = queueKey(record.org_id, record.queue_id);
    const items = this.#items.get(queue);
    if (items === undefined) return;
    items.byKey.delete(key);
    items.ordered = null;
    if (items.byKey.size === 0) this.#items.delete(queue);
  }

  #count(key: string, { items, bytes }: OrgSizes): void {
    const org = orgOf(key);
    const sizes = this.#sizes.get(org) ?? { items: 0, bytes: 0 };
    const sum = { items: sizes.items + items, bytes: sizes.bytes + bytes };
    if (sum.bytes === 0) this.#sizes.delete(org);
    else this.#sizes.set(org, sum);
  }
}

const orgOf = (key: string): string => key.slice(0, key.indexOf('.'));

function inOrder(a: ItemRecord, b: ItemRecord): number {
  if (a.added_ms !== b.added_ms) return a.added_ms - b.added_ms;
  if (a.index !== b.index) return a.index - b.index;
  return a.item_id < b.item_id ? -1 : 1;
}
