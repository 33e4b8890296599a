// Datasets as they are made, listed, shown, run and deleted. A dataset is fixed by its name and version: its id follows from them.
import { createHash, randomBytes } from 'node:crypto';
import { RevisionConflict } from '../../../ops/platform/nats/watched_bucket.ts';
import { canonicalJson } from '../../../pipeline/domain/evals/dataset_items.ts';
import type { DatasetItem, DatasetRecord } from '../../../schemas/records/dataset.ts';
import type { EvalRecord } from '../../../schemas/records/eval.ts';
import type { PromptRecord } from '../../../schemas/records/prompt.ts';
import { ApiError } from '../../http/errors.ts';
import { pageOf, type PageQuery } from '../../http/list_pages.ts';
import { type PageMeta, pageMetaOf } from '../../http/pagination.ts';
import {
  type CreateDatasetBody,
  type DatasetInfo,
  type DatasetsQuery,
  type IndexedItem,
  ITEM_BYTES_MAX,
  type RunBody,
} from './schema.ts';
import type { DatasetStore } from './store.ts';

/** Datasets of an org, each version counted; keeps what every process holds small. */
export const DATASETS_MAX = 10_000;
/** Bytes of the items of all datasets of an org; a little more where several processes make some at once. */
export const DATASETS_BYTES_MAX = 1024 * 1024 * 1024;
/** A part ends at this many bytes, or before the item that would take it beyond. */
const PART_BYTES_MAX = 768 * 1024;

export interface DatasetsDeps {
  datasets: DatasetStore;
  /** What name@version, or a name, means; null for nothing. */
  promptOf: (org_id: string, ref: string) => PromptRecord | null;
  /**
   * Begins a run of a dataset.
   * @throws ApiError judge_not_found, judge_quota_exceeded, rate_limited, upstream_unavailable
   */
  beginRun: (
    org_id: string,
    run: {
      judge_id: string;
      dataset: NonNullable<EvalRecord['dataset']>;
      prompt: PromptRecord | null;
      items: number;
      isThere: () => Promise<boolean>;
    },
  ) => Promise<EvalRecord>;
  /** Running evals of the org as the process knows them, and as they are stored now. */
  runningEvals: { known: (org_id: string) => EvalRecord[]; stored: (org_id: string) => Promise<EvalRecord[]> };
  /** Deletes the org's grants on a dataset. @returns how many there were */
  removeGrants: (org_id: string, dataset_id: string) => Promise<number>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Answers POST /v1/datasets. @throws ApiError conflict, invalid_request, upstream_unavailable */
export async function createDataset(
  deps: DatasetsDeps,
  org_id: string,
  body: CreateDatasetBody,
): Promise<{ record: DatasetRecord; made: boolean }> {
  const { datasets, now } = deps;
  const { name, version } = body;
  const items = body.items.map(({ input, expected, metadata }): DatasetItem => ({
    input,
    expected: expected ?? null,
    metadata: metadata ?? {},
  }));
  const texts = items.map((item) => canonicalJson(item));
  const large = texts.findIndex((text) => Buffer.byteLength(text) > ITEM_BYTES_MAX);
  if (large >= 0)
    throw new ApiError('invalid_request', `items[${String(large)}]: takes up to ${String(ITEM_BYTES_MAX)} bytes`);
  const digest = createHash('sha256')
    .update(`[${texts.join(',')}]`)
    .digest('hex');
  const dataset_id = `ds_${createHash('sha256')
    .update(canonicalJson([org_id, name, version]))
    .digest('hex')
    .slice(0, 16)}`;
  const known = datasets.get(org_id, dataset_id);
  if (datasets.isDeleting(org_id, dataset_id)) await finishDeletion(deps, org_id, dataset_id);
  const parts = partsByBytes(texts);
  const bytes = parts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  if (known === null) checkRoom(datasets, org_id, bytes);
  const created_at = new Date(now()).toISOString();
  const record = {
    org_id,
    dataset_id,
    name,
    version,
    item_count: items.length,
    digest,
    parts: parts.map(({ first }) => first),
    bytes,
    created_at,
    parts_id: randomBytes(16).toString('hex'),
  };
  let stands = known;
  try {
    stands ??= await datasets.create(
      record,
      parts.map(({ text }) => text),
    );
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'The store of datasets cannot be written to. Try again.', { cause });
  }
  if (stands.deleting !== undefined)
    throw new ApiError('conflict', `version: ${name} ${version} is being deleted. Try again shortly.`);
  if (stands.digest !== digest)
    throw new ApiError('conflict', `version: ${name} has a version ${version} with other items.`);
  return { record: stands, made: stands === record };
}

/** @throws ApiError conflict when the org has as many datasets as it may, or as many bytes of them */
function checkRoom(datasets: DatasetsDeps['datasets'], org_id: string, bytes: number): void {
  const held = datasets.sizes(org_id);
  if (held.count >= DATASETS_MAX)
    throw new ApiError(
      'conflict',
      `An organization has at most ${String(DATASETS_MAX)} datasets, each version counted. Delete one first.`,
    );
  if (held.bytes + bytes > DATASETS_BYTES_MAX) {
    const detail = `The datasets of an organization have at most ${String(DATASETS_BYTES_MAX)} bytes of items`;
    throw new ApiError(
      'conflict',
      `${detail}; they have ${String(held.bytes)}, and this one ${String(bytes)}. Delete one first.`,
    );
  }
}

/** Answers GET /v1/datasets: newest first. */
export function listDatasets(
  { datasets }: DatasetsDeps,
  org_id: string,
  query: DatasetsQuery,
): { data: DatasetInfo[]; meta: PageMeta } {
  const found = datasets.list(org_id).filter(({ name }) => query.name === undefined || name === query.name);
  const { data, meta } = pageOf(found, query);
  return { data: data.map(infoOf), meta };
}

/** @throws ApiError dataset_not_found */
export function findDataset(
  { datasets }: Pick<DatasetsDeps, 'datasets'>,
  org_id: string,
  dataset_id: string,
): DatasetRecord {
  const record = datasets.get(org_id, dataset_id);
  if (record === null) throw new ApiError('dataset_not_found', 'There is no dataset of this id.');
  return record;
}

/** Answers GET /v1/datasets/{dataset_id}/items. @throws ApiError dataset_not_found, upstream_unavailable */
export async function listItems(
  deps: DatasetsDeps,
  org_id: string,
  dataset_id: string,
  { limit, offset }: PageQuery,
): Promise<{ data: IndexedItem[]; meta: PageMeta }> {
  const record = findDataset(deps, org_id, dataset_id);
  const to = Math.min(record.item_count, offset + limit);
  const items = await deps.datasets.items(record, offset, to).catch((cause: unknown) => {
    throw new ApiError('upstream_unavailable', 'The store of datasets cannot be read. Try again.', { cause });
  });
  return {
    data: items.map((item, i) => ({ item_index: offset + i, ...item })),
    meta: pageMetaOf(record.item_count, limit, offset),
  };
}

/** Begins POST /v1/datasets/{dataset_id}/run. @throws ApiError dataset_not_found, prompt_not_found, invalid_request, and as beginRun */
export async function runDataset(
  deps: DatasetsDeps,
  org_id: string,
  dataset_id: string,
  body: RunBody,
): Promise<EvalRecord> {
  const found = findDataset(deps, org_id, dataset_id);
  const prompt = body.prompt_version == null ? null : deps.promptOf(org_id, body.prompt_version);
  if (prompt === null && body.prompt_version != null)
    throw new ApiError('prompt_not_found', 'prompt_version: the org has no such prompt.');
  const model = body.model ?? prompt?.model ?? null;
  if (model === null) throw new ApiError('invalid_request', 'model: is missing, and the prompt names none');
  const { digest, item_count: items } = found;
  const dataset = {
    dataset_id,
    prompt_version: prompt === null ? null : `${prompt.name}@${prompt.version}`,
    model,
    digest,
  };
  return deps.beginRun(org_id, {
    judge_id: body.judge_id,
    dataset,
    prompt,
    items,
    isThere: () => deps.datasets.stands(found),
  });
}

/**
 * Answers DELETE /v1/datasets/{dataset_id}: deletes the dataset with its items and the grants on it. A run that begins meanwhile finds
 * the mark on the record and withdraws, and a run that began before is found here, so no run is left without its items.
 * @returns the dataset as it was, and how many grants went with it
 * @throws ApiError dataset_not_found, conflict while a running eval uses it, upstream_unavailable
 */
export async function deleteDataset(
  deps: DatasetsDeps,
  org_id: string,
  dataset_id: string,
): Promise<{ record: DatasetRecord; grants: number }> {
  const { datasets, runningEvals, removeGrants } = deps;
  const uses = ({ dataset }: EvalRecord): boolean => dataset?.dataset_id === dataset_id;
  const refuseIfUsed = (running: readonly EvalRecord[]): void => {
    const user = running.find(uses);
    if (user !== undefined)
      throw new ApiError(
        'conflict',
        `The running eval ${user.eval_id} uses the dataset. Wait for its end, or cancel it.`,
      );
  };
  refuseIfUsed(runningEvals.known(org_id));
  try {
    const marked = await datasets.beginDeletion(org_id, dataset_id);
    if (marked === null) throw new ApiError('dataset_not_found', 'There is no dataset of this id.');
    try {
      if (marked.value.deleting !== 'purging') refuseIfUsed(await runningEvals.stored(org_id));
    } catch (error) {
      await datasets.endDeletion(marked);
      throw error;
    }
    const grants = await removeGrants(org_id, dataset_id);
    await datasets.finishDeletion(marked);
    return { record: marked.value, grants };
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    if (cause instanceof RevisionConflict)
      throw new ApiError('conflict', 'Another request is deleting the dataset. Try again shortly.', { cause });
    throw new ApiError('upstream_unavailable', 'The store of datasets cannot be written to. Try again.', { cause });
  }
}

/** Finishes a deletion that broke off. One that another process has finished meanwhile is none. */
async function finishDeletion(deps: DatasetsDeps, org_id: string, dataset_id: string): Promise<void> {
  try {
    await deleteDataset(deps, org_id, dataset_id);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'dataset_not_found') throw error;
  }
}

export function infoOf({ dataset_id, name, version, item_count, created_at }: DatasetRecord): DatasetInfo {
  return { dataset_id, name, version, item_count, created_at };
}

/** Items as JSON arrays of bounded size, each with the index of its first item. */
function partsByBytes(texts: readonly string[]): { first: number; text: string }[] {
  const parts: { first: number; texts: string[]; bytes: number }[] = [];
  for (const [index, text] of texts.entries()) {
    const bytes = Buffer.byteLength(text) + 1;
    const last = parts.at(-1);
    if (last === undefined || last.bytes + bytes > PART_BYTES_MAX) parts.push({ first: index, texts: [text], bytes });
    else {
      last.texts.push(text);
      last.bytes += bytes;
    }
  }
  return parts.map(({ first, texts: own }) => ({ first, text: `[${own.join(',')}]` }));
}
