// Datasets in JetStream KV: records watched into memory, items read when they are asked for. Guarantees: a (name, version) is written
// once; a dataset that can be found is there as a whole, as its items are written before its record.
import type { KV } from '@nats-io/kv';
import type { Log } from '../../ops/nats/open_log.ts';
import { RevisionConflict, WatchedBucket } from '../../ops/watched_bucket.ts';
import {
  type DatasetItem,
  datasetKey,
  datasetPartKey,
  type DatasetRecord,
  parseDataset,
  parseDatasetPart,
  partsOf,
} from '../../schemas/records/dataset.ts';
import { orgKey } from '../../schemas/records/org.ts';

/** Parts that are written at a time. */
const PARTS_AT_ONCE = 4;

export class DatasetStore {
  readonly #bucket: WatchedBucket<DatasetRecord>;
  readonly #kv: KV;
  readonly #items: KV;
  /** Keys of each org's datasets, by the org's part of a key. */
  readonly #byOrg = new Map<string, Set<string>>();

  private constructor(bucket: WatchedBucket<DatasetRecord>, kv: KV, items: KV) {
    this.#bucket = bucket;
    this.#kv = kv;
    this.#items = items;
    const add = (key: string): void => {
      const org = key.slice(0, key.lastIndexOf('.'));
      this.#byOrg.set(org, (this.#byOrg.get(org) ?? new Set()).add(key));
    };
    for (const [key] of bucket.entries()) add(key);
    bucket.onChange((key, held) => {
      if (held !== null) add(key);
      else this.#byOrg.get(key.slice(0, key.lastIndexOf('.')))?.delete(key);
    });
  }

  static async open(log: Log, onProblem: (problem: string, cause: unknown) => void): Promise<DatasetStore> {
    const kv = await log.bucket('datasets');
    const bucket = await WatchedBucket.open(log.nc, kv, { name: 'datasets', parse: parseDataset, onProblem });
    return new DatasetStore(bucket, kv, await log.bucket('dataset_items'));
  }

  get(org_id: string, dataset_id: string): DatasetRecord | null {
    return this.#bucket.get(datasetKey(org_id, dataset_id)) ?? null;
  }

  /** How many datasets an org has, and how many bytes their items. */
  sizes(org_id: string): { count: number; bytes: number } {
    const sizes = { count: 0, bytes: 0 };
    for (const key of this.#byOrg.get(orgKey(org_id)) ?? []) {
      sizes.count += 1;
      sizes.bytes += this.#bucket.get(key)?.bytes ?? 0;
    }
    return sizes;
  }

  /** Of an org, newest first. */
  list(org_id: string): DatasetRecord[] {
    return [...(this.#byOrg.get(orgKey(org_id)) ?? [])].flatMap((key) => this.#bucket.get(key) ?? []).sort(newestFirst);
  }

  /**
   * Writes a dataset unless there is one of its id.
   * @param parts its items as JSON, in parts
   * @returns what stands now: `record` itself when it was written, else the one that was there first
   */
  async create(record: DatasetRecord, parts: readonly string[]): Promise<DatasetRecord> {
    for (let at = 0; at < parts.length; at += PARTS_AT_ONCE)
      await Promise.all(parts.slice(at, at + PARTS_AT_ONCE).map((text, i) => this.#items.put(datasetPartKey(record, at + i), text)));
    const key = datasetKey(record.org_id, record.dataset_id);
    try {
      await this.#bucket.create(key, record);
      return record;
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
    const first = await this.#kv.get(key);
    if (first?.operation !== 'PUT') throw new Error('a dataset was there and is gone');
    const winner = parseDataset(first.string());
    // The same items lie under the same keys; others are nobody's.
    if (winner.digest !== record.digest) await Promise.all(parts.map((_, part) => this.#items.purge(datasetPartKey(record, part))));
    return winner;
  }

  /** Items from `from` up to, without, `to`. */
  async items(record: DatasetRecord, from: number, to: number): Promise<DatasetItem[]> {
    const items: DatasetItem[] = [];
    for (const part of partsOf(record.parts, from, to)) {
      const entry = await this.#items.get(datasetPartKey(record, part));
      if (entry?.operation !== 'PUT') throw new Error(`part ${String(part)} of dataset ${record.dataset_id} is missing`);
      const first = record.parts[part] ?? 0;
      items.push(...parseDatasetPart(entry.string()).slice(Math.max(0, from - first), to - first));
    }
    return items;
  }

  close(): void {
    this.#bucket.close();
  }
}

function newestFirst(a: DatasetRecord, b: DatasetRecord): number {
  if (a.created_at !== b.created_at) return a.created_at > b.created_at ? -1 : 1;
  return a.dataset_id > b.dataset_id ? -1 : 1;
}
