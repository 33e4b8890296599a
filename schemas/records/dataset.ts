// Datasets as stored in KV: a record that every process holds, and the items in parts that are read one by one. A (name, version)
// is written once and never changes: the id follows from it, the key of the parts from what they hold.
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
});
export type DatasetRecord = z.infer<typeof datasetRecord>;

export const datasetKey = (org_id: string, dataset_id: string): string => `${orgKey(org_id)}.${dataset_id}`;
/** Key of a part in dataset_items. With the digest in it, two that are made at once with different items do not meet. */
export const datasetPartKey = (
  { org_id, dataset_id, digest }: Pick<DatasetRecord, 'org_id' | 'dataset_id' | 'digest'>,
  part: number,
): string => `${datasetKey(org_id, dataset_id)}.${digest.slice(0, 32)}.${String(part)}`;

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
  return from >= to ? [] : parts.flatMap((first, part) => (first < to && (parts[part + 1] ?? Infinity) > from ? [part] : []));
}
