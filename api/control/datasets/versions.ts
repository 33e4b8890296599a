// Makes a version of a dataset from another one: copies its items with some added, removed or
// replaced. The record of the new version is written after all of its items, so a process that is
// killed meanwhile leaves no version behind. Bounded in items, bytes and concurrent requests.
import { canonicalJson } from '../../../pipeline/domain/evals/dataset_items.ts';
import type { DatasetRecord } from '../../../schemas/records/dataset.ts';
import { ApiError } from '../../http/errors.ts';
import { checkSizes, type DatasetsDeps, findDataset, itemOf, storeVersion } from './datasets.ts';
import { ITEMS_MAX, type VersionBody } from './schema.ts';

/** Maximum bytes of all items of a version that is made from another: it is held in memory meanwhile. */
const VERSION_BYTES_MAX = 32 * 1024 * 1024;
/** Maximum concurrent requests of one organization in one API process, as each holds all items. */
export const VERSIONS_AT_ONCE = 2;

/**
 * Serves POST /v1/datasets/{dataset_id}/versions.
 *
 * @returns the new version, whether it was made now, and the version that it was made from
 * @throws ApiError dataset_not_found, invalid_request, conflict, rate_limited, upstream_unavailable
 */
export async function createVersion(
  deps: DatasetsDeps,
  org_id: string,
  dataset_id: string,
  body: VersionBody,
): Promise<{ record: DatasetRecord; made: boolean; base: DatasetRecord }> {
  const base = findDataset(deps, org_id, dataset_id);
  checkPlaces(base, body);
  const added = body.add.map((item) => canonicalJson(itemOf(item)));
  const replaced = body.replace.map((item) => canonicalJson(itemOf(item)));
  checkSizes('add', added);
  checkSizes('replace', replaced);
  const release = deps.versionSlots.take(org_id);
  if (release === null) {
    const detail = `This organization has ${VERSIONS_AT_ONCE} versions of datasets in the making. Retry after the number of seconds in Retry-After.`;
    throw new ApiError('rate_limited', detail, { headers: { 'Retry-After': '1' } });
  }
  try {
    const kept = await keptTexts(deps, base, body, replaced);
    const texts = [...kept, ...added];
    checkWhole(texts);
    const version = body.version ?? nextVersion(deps, org_id, base.name);
    return { ...(await storeVersion(deps, org_id, { name: base.name, version, texts })), base };
  } finally {
    release();
  }
}

/** @throws ApiError invalid_request for a request that changes nothing, or names items that the base does not have */
function checkPlaces({ item_count }: DatasetRecord, { add, remove, replace }: VersionBody): void {
  if (add.length + remove.length + replace.length === 0)
    throw new ApiError('invalid_request', 'add: must have an item, if remove and replace have none');
  const named = new Set<number>();
  const check = (field: string, index: number): void => {
    if (index >= item_count)
      throw new ApiError('invalid_request', `${field}: must be an item_index below ${item_count}`);
    if (named.has(index)) throw new ApiError('invalid_request', `${field}: the item ${index} is named twice`);
    named.add(index);
  };
  for (const [at, index] of remove.entries()) check(`remove[${at}]`, index);
  for (const [at, { item_index }] of replace.entries()) check(`replace[${at}].item_index`, item_index);
}

/**
 * Returns the items of the base that stay, in order and in canonical JSON, with the replaced ones in
 * their places.
 */
async function keptTexts(
  { datasets }: DatasetsDeps,
  base: DatasetRecord,
  { remove, replace }: VersionBody,
  replaced: readonly string[],
): Promise<string[]> {
  if (base.bytes > VERSION_BYTES_MAX) throw tooLarge();
  const gone = new Set(remove);
  const places = new Map(replace.map(({ item_index }, at) => [item_index, replaced[at] ?? '']));
  const items = await datasets.items(base, 0, base.item_count).catch((cause: unknown) => {
    throw new ApiError('upstream_unavailable', 'The store of datasets cannot be read. Try again.', { cause });
  });
  return items.flatMap((item, index) => (gone.has(index) ? [] : [places.get(index) ?? canonicalJson(item)]));
}

/** @throws ApiError invalid_request */
function checkWhole(texts: readonly string[]): void {
  if (texts.length === 0) throw new ApiError('invalid_request', 'remove: at least one item must remain');
  if (texts.length > ITEMS_MAX)
    throw new ApiError(
      'invalid_request',
      `add: a version has at most ${ITEMS_MAX} items, this one has ${texts.length}`,
    );
  if (texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) > VERSION_BYTES_MAX) throw tooLarge();
}

const tooLarge = (): ApiError =>
  new ApiError(
    'invalid_request',
    `add: the items of a version that is made from another have at most ${VERSION_BYTES_MAX} bytes in all`,
  );

/** Returns the whole number after the highest one among the versions of a dataset. */
function nextVersion({ datasets }: DatasetsDeps, org_id: string, name: string): string {
  const numbers = datasets
    .list(org_id)
    .filter((record) => record.name === name && /^\d{1,15}$/.test(record.version))
    .map(({ version }) => Number(version));
  return String(Math.max(0, ...numbers) + 1);
}
