// The requests of the datasets: versions by name, items in pages, and new versions.
import { infiniteQueryOptions, type QueryClient, queryOptions } from '@tanstack/react-query';
import { type Answer, apiQuery, get, send } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
import type { NewItem } from './new_item.ts';

export type Dataset = Answer<'/v1/datasets'>['data'][number];
export type Item = Answer<'/v1/datasets/{dataset_id}/items'>['data'][number];

const LIST = '/v1/datasets';
const ITEMS = '/v1/datasets/{dataset_id}/items';
const PAGE = 200;

/** Describes the pages of all versions, the newest first. */
export const datasetsQuery = (org_id: string) =>
  infiniteQueryOptions({
    queryKey: [org_id, LIST, 'pages'],
    queryFn: ({ pageParam, signal }) => get(org_id, LIST, { query: { limit: PAGE, offset: pageParam } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: ({ meta }) => (meta.has_more ? meta.page * meta.per_page : null),
  });

/** Describes the names of the datasets with the newest versions. */
export const namesQuery = (org_id: string) =>
  queryOptions({
    ...apiQuery(org_id, LIST, { query: { limit: PAGE } }),
    select: ({ data }) => [...new Set(data.map(({ name }) => name))],
  });

/** Describes the newest versions of one dataset. */
export const versionsQuery = (org_id: string, name: string) =>
  queryOptions(apiQuery(org_id, LIST, { query: { name, limit: PAGE } }));

export const datasetQuery = (org_id: string, dataset_id: string) =>
  queryOptions({
    ...apiQuery(org_id, '/v1/datasets/{dataset_id}', { path: { dataset_id } }),
    staleTime: FRESH.registry,
  });

/** Describes the pages of the items of a version, which never change. */
export const itemsQuery = (org_id: string, dataset_id: string) =>
  infiniteQueryOptions({
    queryKey: [org_id, ITEMS, dataset_id],
    queryFn: ({ pageParam, signal }) =>
      get(org_id, ITEMS, { path: { dataset_id }, query: { limit: PAGE, offset: pageParam } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: ({ meta }) => (meta.has_more ? meta.page * meta.per_page : null),
    staleTime: Infinity,
  });

/** Changes of a version that make the next one. */
export interface Changes {
  add: readonly NewItem[];
  remove: readonly number[];
  replace: readonly (NewItem & { item_index: number })[];
}

/** Makes the next version of a dataset. @throws RequestError */
export const makeVersion = (org_id: string, dataset_id: string, changes: Changes, idempotencyKey: string) =>
  send(org_id, 'post', '/v1/datasets/{dataset_id}/versions', {
    params: { path: { dataset_id } },
    body: { add: [...changes.add], remove: [...changes.remove], replace: [...changes.replace] },
    idempotencyKey,
  });

/** Makes the first version of a dataset. @throws RequestError */
export const makeDataset = (org_id: string, name: string, items: readonly NewItem[], idempotencyKey: string) =>
  send(org_id, 'post', LIST, { body: { name, version: '1', items: [...items] }, idempotencyKey });

/** Adds items to the newest version of a dataset, or makes the dataset. @throws RequestError */
export async function addItems(
  org_id: string,
  name: string,
  items: readonly NewItem[],
  idempotencyKey: string,
): Promise<Dataset> {
  const { data } = await get(org_id, LIST, { query: { name, limit: 1 } });
  const [newest] = data;
  const made =
    newest === undefined
      ? await makeDataset(org_id, name, items, idempotencyKey)
      : await makeVersion(org_id, newest.dataset_id, { add: items, remove: [], replace: [] }, idempotencyKey);
  return made.data;
}

/** Reads the lists of datasets again, after a new version. */
export const rereadDatasets = (queries: QueryClient, org_id: string): Promise<void> =>
  queries.invalidateQueries({ queryKey: [org_id, LIST] });

export const datasetPath = (org_id: string, dataset_id: string): string =>
  `/o/${encodeURIComponent(org_id)}/datasets/${encodeURIComponent(dataset_id)}`;

const LAST = 'millrace.dataset';

/** Returns the dataset that items went to last. */
export function lastDataset(): string {
  try {
    return localStorage.getItem(LAST) ?? '';
  } catch {
    return '';
  }
}

export function keepLastDataset(name: string): void {
  try {
    localStorage.setItem(LAST, name);
  } catch {
    // The next dialog begins without a name.
  }
}
