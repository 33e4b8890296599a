// Datasets in JetStream KV: records are watched into memory, items are read on demand. Each (name,
// version) is written once. A dataset that can be found is complete: its items are written before
// its record, and deleted after the record was marked. An interrupted deletion is finished by the
// next deletion, or by the next creation of the same (name, version).
import type { KV } from '@nats-io/kv';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { OrgIndex } from '../../../ops/platform/nats/org_index.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { type BucketEntry, RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import {
  type DatasetItem,
  datasetKey,
  datasetPartKey,
  type DatasetRecord,
  parseDataset,
  parseDatasetPart,
  partsOf,
} from '../../../schemas/records/dataset.ts';

/** Parts of the items that are written concurrently. */
const PARTS_AT_ONCE = 4;

export class DatasetStore {
  readonly #bucket: WatchedBucket<DatasetRecord>;
  readonly #kv: KV;
  readonly #items: KV;
  readonly #byOrg: OrgIndex<DatasetRecord>;

  private constructor(bucket: WatchedBucket<DatasetRecord>, kv: KV, items: KV) {
    this.#bucket = bucket;
    this.#kv = kv;
    this.#items = items;
    this.#byOrg = new OrgIndex(bucket);
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<DatasetStore> {
    const bucket = await watch(log, 'datasets', onProblem);
    return new DatasetStore(bucket, await log.bucket('datasets'), await log.bucket('dataset_items'));
  }

  get(org_id: string, dataset_id: string): DatasetRecord | null {
    const record = this.#bucket.get(datasetKey(org_id, dataset_id));
    return record === undefined || record.deleting !== undefined ? null : record;
  }

  /** Returns whether a deletion of the dataset has started and not ended. */
  isDeleting(org_id: string, dataset_id: string): boolean {
    return this.#bucket.get(datasetKey(org_id, dataset_id))?.deleting !== undefined;
  }

  /** Returns whether the bucket still has the dataset with the digest that the caller knows. */
  async stands({ org_id, dataset_id, digest }: DatasetRecord): Promise<boolean> {
    const entry = await this.#kv.get(datasetKey(org_id, dataset_id));
    if (entry?.operation !== 'PUT') return false;
    const now = parseDataset(entry.string());
    return now.deleting === undefined && now.digest === digest;
  }

  /** Returns the number of datasets of an organization and the bytes of their items. */
  sizes(org_id: string): { count: number; bytes: number } {
    const sizes = { count: 0, bytes: 0 };
    for (const { bytes } of this.#byOrg.of(org_id).values()) {
      sizes.count += 1;
      sizes.bytes += bytes;
    }
    return sizes;
  }

  /** Returns those of an organization, newest first. */
  list(org_id: string): DatasetRecord[] {
    return [...this.#byOrg.of(org_id).values()].filter(({ deleting }) => deleting === undefined).sort(newestFirst);
  }

  /**
   * Writes a dataset unless its id is in use.
   *
   * @param parts the items as JSON, in parts
   * @returns the stored record: `record` itself if it was written, otherwise the earlier one
   */
  async create(record: DatasetRecord, parts: readonly string[]): Promise<DatasetRecord> {
    for (let at = 0; at < parts.length; at += PARTS_AT_ONCE)
      await Promise.all(
        parts.slice(at, at + PARTS_AT_ONCE).map((text, i) => this.#items.put(datasetPartKey(record, at + i), text)),
      );
    const key = datasetKey(record.org_id, record.dataset_id);
    try {
      await this.#bucket.create(key, record);
      return record;
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
    const first = await this.#kv.get(key);
    if (first?.operation !== 'PUT') throw new Error('a dataset disappeared while it was created');
    // The earlier record has parts of its own.
    await this.#purgeParts(record);
    return parseDataset(first.string());
  }

  /**
   * Marks a dataset as being deleted, or takes over such a deletion. From then on no run of the
   * dataset starts.
   *
   * @returns the record with the revision that finishes or ends this deletion; null if the
   * organization has no such dataset
   */
  async beginDeletion(org_id: string, dataset_id: string): Promise<BucketEntry<DatasetRecord> | null> {
    const key = datasetKey(org_id, dataset_id);
    const marked = await this.#bucket.change(key, (record) =>
      record === undefined || record.deleting === 'purging' ? null : { ...record, deleting: 'checking' },
    );
    return marked === undefined ? null : (this.#bucket.held(key) ?? null);
  }

  /** Ends a deletion without deleting anything, unless another process has taken it over. */
  async endDeletion({ value, revision }: BucketEntry<DatasetRecord>): Promise<void> {
    const record = { ...value };
    delete record.deleting;
    await this.#bucket.update(datasetKey(value.org_id, value.dataset_id), record, revision).catch(unlessLost);
  }

  /**
   * Deletes a marked dataset with its items. @throws RevisionConflict when another process has
   * taken over the deletion
   */
  async finishDeletion({ value, revision }: BucketEntry<DatasetRecord>): Promise<void> {
    const key = datasetKey(value.org_id, value.dataset_id);
    if (value.deleting !== 'purging') await this.#bucket.update(key, { ...value, deleting: 'purging' }, revision);
    const held = this.#bucket.held(key);
    await this.#purgeParts(value);
    // Another process may have finished the same deletion, and the version may have been created
    // again since.
    if (held?.value.deleting === 'purging') await this.#bucket.delete(key, held.revision).catch(unlessLost);
  }

  /** Returns the items from index `from` up to, but not including, `to`. */
  async items(record: DatasetRecord, from: number, to: number): Promise<DatasetItem[]> {
    const items: DatasetItem[] = [];
    for (const part of partsOf(record.parts, from, to)) {
      const entry = await this.#items.get(datasetPartKey(record, part));
      if (entry?.operation !== 'PUT') throw new Error(`part ${part} of dataset ${record.dataset_id} is missing`);
      const first = record.parts[part] ?? 0;
      items.push(...parseDatasetPart(entry.string()).slice(Math.max(0, from - first), to - first));
    }
    return items;
  }

  close(): void {
    this.#bucket.close();
  }

  async #purgeParts(record: DatasetRecord): Promise<void> {
    for (let at = 0; at < record.parts.length; at += PARTS_AT_ONCE)
      await Promise.all(
        record.parts.slice(at, at + PARTS_AT_ONCE).map((_, i) => this.#items.purge(datasetPartKey(record, at + i))),
      );
  }
}

function unlessLost(error: unknown): void {
  if (!(error instanceof RevisionConflict)) throw error;
}

function newestFirst(a: DatasetRecord, b: DatasetRecord): number {
  if (a.created_at !== b.created_at) return a.created_at > b.created_at ? -1 : 1;
  return a.dataset_id > b.dataset_id ? -1 : 1;
}
