// Datasets as stored in KV: a record that every process holds, and the items in parts that are read one by one. A (name, version)
// is written once and never changes until it is deleted: the id follows from it. After a deletion the same (name, version) can be made
// again, with the same id and any items.
import { z } from 'zod';
import { orgKey } from './org.ts';

export const datasetItem = z.object({
  input: z.record(z.string(), z.unknown()),
  expected: z.record(z.string(), z.unknown()).nullable(),
  metadata: z.record(z.string(), z.unknown()),
});
export type DatasetItem = z.infer<typeof datasetItem>;

export const datasetRecord = z.object({
  org_id: z.string(),
  dataset_id: z.string(),
  name: z.string(),
  version: z.string(),
  item_count: z.int().min(1),
  /** SHA-256 over the items in canonical JSON, lower-case hex. */
  digest: z.string(),
  /** Index of the first item of each part. */
  parts: z.array(z.int().min(0)),
  /** Of all items, as they lie in the parts. 0 where the dataset was stored before its bytes were counted. */
  bytes: z.int().min(0).default(0),
  created_at: z.iso.datetime(),
  /** Names the parts of this very creation, so that deleting one never meets another; absent from older records, whose digest names them. */
  parts_id: z.string().optional(),
  /**
   * Set while the dataset is being deleted; readers see no dataset then. checking: it comes back if a running eval uses it. purging: its
   * items are being deleted, and any process may finish that.
   */
  deleting: z.enum(['checking', 'purging']).optional(),
});
export type DatasetRecord = z.infer<typeof datasetRecord>;

export const datasetKey = (org_id: string, dataset_id: string): string => `${orgKey(org_id)}.${dataset_id}`;
/** Key of a part in dataset_items. Two datasets that are made at once under one name and version have different ones. */
export const datasetPartKey = (
  { org_id, dataset_id, digest, parts_id }: Pick<DatasetRecord, 'org_id' | 'dataset_id' | 'digest' | 'parts_id'>,
  part: number,
): string => `${datasetKey(org_id, dataset_id)}.${parts_id ?? digest.slice(0, 32)}.${String(part)}`;

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parseDataset(text: string): DatasetRecord {
  return datasetRecord.parse(JSON.parse(text));
}

/** @throws ZodError when the text is no part; SyntaxError when it is no JSON */
export function parseDatasetPart(text: string): DatasetItem[] {
  return z.array(datasetItem).parse(JSON.parse(text));
}

/** Which parts hold the items from `from` up to, without, `to`. */
export function partsOf(parts: readonly number[], from: number, to: number): number[] {
  return from >= to
    ? []
    : parts.flatMap((first, part) => (first < to && (parts[part + 1] ?? Infinity) > from ? [part] : []));
}
