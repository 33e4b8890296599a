// Creates, lists, runs and deletes datasets. A dataset is identified by organization, name and
// version, from which its id is derived, and its items never change.
import { createHash, randomBytes } from 'node:crypto';
import { RevisionConflict } from '../../../ops/platform/nats/watched_bucket.ts';
import { canonicalJson } from '../../../pipeline/domain/evals/dataset_items.ts';
import type { DatasetItem, DatasetRecord } from '../../../schemas/records/dataset.ts';
import type { EvalRecord } from '../../../schemas/records/eval.ts';
import type { PromptRecord } from '../../../schemas/records/prompt.ts';
import { ApiError } from '../../http/errors.ts';
import { pageOf, type PageQuery } from '../../http/list_pages.ts';
import type { OrgSlots } from '../../http/org_slots.ts';
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

/**
 * Maximum datasets of one organization, counting each version. Every API process holds their
 * records in memory.
 */
export const DATASETS_MAX = 10_000;
/**
 * Maximum bytes of the items of all datasets of one organization. Several processes that create
 * datasets at once may exceed it slightly.
 */
export const DATASETS_BYTES_MAX = 1024 * 1024 * 1024;
/** Maximum bytes of one stored part of the items. */
const PART_BYTES_MAX = 768 * 1024;

export interface DatasetsDeps {
  /** Slots of the concurrent requests of each organization that make a version from another. */
  versionSlots: Pick<OrgSlots, 'take'>;
  datasets: DatasetStore;
  /** Returns the prompt that `name@version` or `name` refers to, or null. */
  promptOf: (org_id: string, ref: string) => PromptRecord | null;
  /**
   * Starts a run of a dataset.
   *
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
  /**
   * Running evals of the organization: as this process knows them, and as the store has them now.
   */
  runningEvals: { known: (org_id: string) => EvalRecord[]; stored: (org_id: string) => Promise<EvalRecord[]> };
  /** Deletes the organization's grants on a dataset. @returns the number of deleted grants */
  removeGrants: (org_id: string, dataset_id: string) => Promise<number>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** An item as a request gives it. */
export type GivenItem = CreateDatasetBody['items'][number];

/** Returns an item with its missing fields empty. */
export const itemOf = ({ input, expected, metadata }: GivenItem): DatasetItem => ({
  input,
  expected: expected ?? null,
  metadata: metadata ?? {},
});

/** Serves POST /v1/datasets. @throws ApiError conflict, invalid_request, upstream_unavailable */
export async function createDataset(
  deps: DatasetsDeps,
  org_id: string,
  { name, version, items }: CreateDatasetBody,
): Promise<{ record: DatasetRecord; made: boolean }> {
  const texts = items.map((item) => canonicalJson(itemOf(item)));
  checkSizes('items', texts);
  return storeVersion(deps, org_id, { name, version, texts });
}

/** @throws ApiError invalid_request that names the first item with too many bytes */
export function checkSizes(field: string, texts: readonly string[]): void {
  const large = texts.findIndex((text) => Buffer.byteLength(text) > ITEM_BYTES_MAX);
  if (large >= 0)
    throw new ApiError('invalid_request', `${field}[${large}]: must have at most ${ITEM_BYTES_MAX} bytes`);
}

/**
 * Stores a version of a dataset, unless it exists with the same items.
 *
 * @param texts the items in canonical JSON
 * @returns made: false if the version existed
 * @throws ApiError conflict, upstream_unavailable
 */
export async function storeVersion(
  deps: DatasetsDeps,
  org_id: string,
  { name, version, texts }: { name: string; version: string; texts: readonly string[] },
): Promise<{ record: DatasetRecord; made: boolean }> {
  const { datasets, now } = deps;
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
    item_count: texts.length,
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

/**
 * @throws ApiError conflict when the organization has the maximum number of datasets, or of bytes
 * in them
 */
function checkRoom(datasets: DatasetsDeps['datasets'], org_id: string, bytes: number): void {
  const held = datasets.sizes(org_id);
  if (held.count >= DATASETS_MAX)
    throw new ApiError(
      'conflict',
      `An organization has at most ${DATASETS_MAX} datasets, counting each version. Delete one first.`,
    );
  if (held.bytes + bytes > DATASETS_BYTES_MAX) {
    const detail = `The datasets of an organization have at most ${DATASETS_BYTES_MAX} bytes of items`;
    throw new ApiError(
      'conflict',
      `${detail}. They have ${held.bytes} now, and this one has ${bytes}. Delete one first.`,
    );
  }
}

/** Serves GET /v1/datasets, newest first. */
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
  if (record === null) throw new ApiError('dataset_not_found', 'There is no dataset with this id.');
  return record;
}

/**
 * Serves GET /v1/datasets/{dataset_id}/items. @throws ApiError dataset_not_found,
 * upstream_unavailable
 */
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

/**
 * Serves POST /v1/datasets/{dataset_id}/run.
 *
 * @throws ApiError dataset_not_found, prompt_not_found, invalid_request, and the errors of
 * `beginRun`
 */
export async function runDataset(
  deps: DatasetsDeps,
  org_id: string,
  dataset_id: string,
  body: RunBody,
): Promise<EvalRecord> {
  const found = findDataset(deps, org_id, dataset_id);
  const prompt = body.prompt_version == null ? null : deps.promptOf(org_id, body.prompt_version);
  if (prompt === null && body.prompt_version != null)
    throw new ApiError('prompt_not_found', 'prompt_version: the organization has no such prompt.');
  const model = body.model ?? prompt?.model ?? null;
  if (model === null) throw new ApiError('invalid_request', 'model: is missing, and the prompt has none');
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
 * Serves DELETE /v1/datasets/{dataset_id}: deletes the dataset, its items and the grants on it. The
 * record is marked before the running evals are read: a run that starts later sees the mark and
 * withdraws, and a run that started earlier is found here, so no run loses its items.
 *
 * @returns the deleted dataset and the number of deleted grants
 * @throws ApiError dataset_not_found, conflict while a running eval uses the dataset,
 * upstream_unavailable
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
        `The running eval ${user.eval_id} uses the dataset. Wait for it to end, or cancel it.`,
      );
  };
  refuseIfUsed(runningEvals.known(org_id));
  try {
    const marked = await datasets.beginDeletion(org_id, dataset_id);
    if (marked === null) throw new ApiError('dataset_not_found', 'There is no dataset with this id.');
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

/**
 * Finishes a deletion that was interrupted. It is not an error if another process finishes it at
 * the same time.
 */
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

/**
 * Returns the items as JSON arrays of at most PART_BYTES_MAX bytes (or one larger item), each with
 * the index of its first item.
 */
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
