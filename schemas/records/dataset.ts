// Datasets in KV: a record, which every process holds, and the items in parts, which are read one
// by one. A (name, version) never changes until it is deleted, and the id follows from it. After a
// deletion, the same (name, version) can be created again with the same id and any items.
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
  /**
   * Bytes of all items as stored in the parts; 0 for a dataset stored before its bytes were
   * counted.
   */
  bytes: z.int().min(0).default(0),
  created_at: z.iso.datetime(),
  /**
   * Names the parts of this creation, so that deleting it cannot touch another's. Absent from older
   * records, whose digest names the parts.
   */
  parts_id: z.string().optional(),
  /**
   * Set while the dataset is being deleted: readers do not see it then. checking: it is restored if
   * a running eval uses it. purging: its items are being deleted, and any process may finish that.
   */
  deleting: z.enum(['checking', 'purging']).optional(),
});
export type DatasetRecord = z.infer<typeof datasetRecord>;

export const datasetKey = (org_id: string, dataset_id: string): string => `${orgKey(org_id)}.${dataset_id}`;
/**
 * Returns the key of a part in dataset_items. Two datasets created at once under one name and
 * version have different keys.
 */
export const datasetPartKey = (
  { org_id, dataset_id, digest, parts_id }: Pick<DatasetRecord, 'org_id' | 'dataset_id' | 'digest' | 'parts_id'>,
  part: number,
): string => `${datasetKey(org_id, dataset_id)}.${parts_id ?? digest.slice(0, 32)}.${part}`;

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseDataset(text: string): DatasetRecord {
  return datasetRecord.parse(JSON.parse(text));
}

/**
 * Parses a stored part.
 * @throws ZodError or SyntaxError when the text is not a part
 */
export function parseDatasetPart(text: string): DatasetItem[] {
  return z.array(datasetItem).parse(JSON.parse(text));
}

/**
 * Returns the indexes of the parts that hold the items from `from` up to, but not including, `to`.
 */
export function partsOf(parts: readonly number[], from: number, to: number): number[] {
  return from >= to
    ? []
    : parts.flatMap((first, part) => (first < to && (parts[part + 1] ?? Infinity) > from ? [part] : []));
}
