// Annotation queues and items in JetStream KV, watched into memory: reads never leave the process.
// Every change of an item compares its revision, so that two people never get one place of an item.
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import {
  annotationKey,
  type AnnotationRecord,
  type ItemRecord,
  itemKey,
  queueKey,
  type QueueRecord,
} from '../../../schemas/records/annotation.ts';
import { orgKey } from '../../../schemas/records/org.ts';
import { ApiError } from '../../http/errors.ts';
import { AnnotationIndex } from './annotation_index.ts';

/** Items that one request writes or deletes concurrently. */
const WRITES_AT_ONCE = 16;

export class AnnotationStore {
  readonly #bucket: WatchedBucket<AnnotationRecord>;
  readonly #index: AnnotationIndex;

  private constructor(bucket: WatchedBucket<AnnotationRecord>) {
    this.#bucket = bucket;
    this.#index = new AnnotationIndex(bucket);
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<AnnotationStore> {
    return new AnnotationStore(await watch(log, 'annotations', onProblem));
  }

  queue(org_id: string, queue_id: string): QueueRecord | null {
    const record = this.#bucket.get(queueKey(org_id, queue_id));
    return record?.kind === 'queue' ? record : null;
  }

  /** Returns an organization's queues, in no order. */
  queues(org_id: string): QueueRecord[] {
    return [...this.#index.queues(orgKey(org_id))];
  }

  item(org_id: string, queue_id: string, item_id: string): ItemRecord | null {
    const record = this.#bucket.get(itemKey(org_id, queue_id, item_id));
    return record?.kind === 'item' ? record : null;
  }

  /** Returns the items of a queue in their order. */
  items(org_id: string, queue_id: string): readonly ItemRecord[] {
    return this.#index.items(queueKey(org_id, queue_id));
  }

  /** Returns the number of items of an organization and the bytes of all its records. */
  sizes(org_id: string): { items: number; bytes: number } {
    return this.#index.sizes(orgKey(org_id));
  }

  /** Returns the items with scores that are not known to be stored. */
  unsent(): ItemRecord[] {
    return this.#index.unsent();
  }

  /** Returns items whose queue is gone: those of a deletion that was interrupted. */
  orphans(): ItemRecord[] {
    return this.#index.orphans();
  }

  async create(record: QueueRecord): Promise<void> {
    await this.#bucket.create(annotationKey(record), record);
  }

  /** Applies a change to the newest record of a queue; null when there is none. */
  async changeQueue(
    org_id: string,
    queue_id: string,
    apply: (record: QueueRecord) => QueueRecord,
  ): Promise<QueueRecord | null> {
    const changed = await this.#bucket.change(queueKey(org_id, queue_id), (record) =>
      record?.kind === 'queue' ? apply(record) : null,
    );
    return changed?.kind === 'queue' ? changed : null;
  }

  /**
   * Applies a change to the newest record of an item, and again when another write came first. Null
   * from `apply` leaves the item as it is, and what it throws ends the change.
   * @returns the item after it; null when there is none
   */
  async changeItem(
    { org_id, queue_id, item_id }: Pick<ItemRecord, 'org_id' | 'queue_id' | 'item_id'>,
    apply: (record: ItemRecord) => ItemRecord | null,
  ): Promise<ItemRecord | null> {
    const changed = await this.#bucket.change(itemKey(org_id, queue_id, item_id), (record) =>
      record?.kind === 'item' ? apply(record) : null,
    );
    return changed?.kind === 'item' ? changed : null;
  }

  /** Writes the items that the queue does not have. @returns the number of written items */
  async add(items: readonly ItemRecord[]): Promise<number> {
    let added = 0;
    const write = async (item: ItemRecord): Promise<void> => {
      try {
        await this.#bucket.create(annotationKey(item), item);
        added += 1;
      } catch (error) {
        if (!(error instanceof RevisionConflict)) throw error;
      }
    };
    for (let at = 0; at < items.length; at += WRITES_AT_ONCE)
      await Promise.all(items.slice(at, at + WRITES_AT_ONCE).map(write));
    return added;
  }

  /**
   * Deletes a queue and then its items. Where the process dies in between, the sweep deletes the
   * rest.
   * @returns false when there is no such queue
   * @throws ApiError conflict when another request changed the queue meanwhile
   */
  async remove(org_id: string, queue_id: string): Promise<boolean> {
    const key = queueKey(org_id, queue_id);
    const held = this.#bucket.held(key);
    if (held === undefined) return false;
    const items = this.items(org_id, queue_id);
    try {
      await this.#bucket.delete(key, held.revision);
    } catch (cause) {
      if (!(cause instanceof RevisionConflict)) throw cause;
      throw new ApiError('conflict', 'The queue is being changed by another request. Try again.', { cause });
    }
    await this.removeItems(items);
    return true;
  }

  /** Deletes items; those that change meanwhile are left to the sweep. */
  async removeItems(items: readonly ItemRecord[]): Promise<void> {
    for (let at = 0; at < items.length; at += WRITES_AT_ONCE)
      await Promise.all(items.slice(at, at + WRITES_AT_ONCE).map((item) => this.#removeItem(item)));
  }

  close(): void {
    this.#bucket.close();
  }

  async #removeItem(item: ItemRecord): Promise<void> {
    const key = annotationKey(item);
    const held = this.#bucket.held(key);
    if (held === undefined) return;
    await this.#bucket.delete(key, held.revision).catch((error: unknown) => {
      if (!(error instanceof RevisionConflict)) throw error;
    });
  }
}
