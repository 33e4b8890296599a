// Routes of datasets: create, also from another version, list, get, delete and run.
import { z } from 'zod';
import type { EvalRecord } from '../../../schemas/records/eval.ts';
import { pageQuery } from '../../http/list_pages.ts';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import {
  createDataset,
  type DatasetsDeps,
  deleteDataset,
  findDataset,
  infoOf,
  listDatasets,
  listItems,
  runDataset,
} from './datasets.ts';
import {
  createDatasetBody,
  datasetInfo,
  datasetParams,
  datasetsQuery,
  deletedDataset,
  indexedItem,
  runBody,
  versionBody,
} from './schema.ts';
import { createVersion } from './versions.ts';

const TAG = 'Datasets';
const ROOT = '/v1/datasets';
const ONE = `${ROOT}/:dataset_id`;
const RESOURCE = { type: 'dataset', param: 'dataset_id' } as const;

/**
 * Shape and wait of the answer to a run, which is that of an eval; the evals slice provides both.
 */
export interface RunAnswers<Item extends z.ZodType> {
  item: Item;
  answered: (record: EvalRecord, isAsync: boolean, signal: AbortSignal) => Promise<z.input<Item>>;
}

export function datasetRoutes<Item extends z.ZodType>(deps: DatasetsDeps, runs: RunAnswers<Item>): Route[] {
  return [
    listDatasetsRoute(deps),
    getDatasetRoute(deps),
    listDatasetItemsRoute(deps),
    createDatasetRoute(deps),
    createDatasetVersionRoute(deps),
    runDatasetRoute(deps, runs),
    deleteDatasetRoute(deps),
  ];
}

function listDatasetsRoute(deps: DatasetsDeps): Route {
  return defineRoute({
    method: 'get',
    path: ROOT,
    operation_id: 'listDatasets',
    summary: 'List datasets',
    description: 'Returns the datasets of the organization, newest first. Every version is a dataset of its own.',
    tag: TAG,
    permission: 'datasets:read',
    query: datasetsQuery,
    response: z.array(datasetInfo),
    meta: pageMeta,
    handler: ({ org_id, query }) => listDatasets(deps, org_id, query),
  });
}

function getDatasetRoute(deps: DatasetsDeps): Route {
  return defineRoute({
    method: 'get',
    path: ONE,
    operation_id: 'getDataset',
    summary: 'Get a dataset',
    description: 'Returns the name, version and number of items of one dataset.',
    tag: TAG,
    permission: 'datasets:read',
    resource: RESOURCE,
    params: datasetParams,
    response: datasetInfo,
    errors: ['dataset_not_found'],
    handler: ({ org_id, params }) => ({ data: infoOf(findDataset(deps, org_id, params.dataset_id)) }),
  });
}

function listDatasetItemsRoute(deps: DatasetsDeps): Route {
  return defineRoute({
    method: 'get',
    path: `${ONE}/items`,
    operation_id: 'listDatasetItems',
    summary: 'List the items of a dataset',
    description: 'Returns the items in the order in which they were given.',
    tag: TAG,
    permission: 'datasets:read',
    resource: RESOURCE,
    params: datasetParams,
    query: pageQuery,
    response: z.array(indexedItem),
    meta: pageMeta,
    errors: ['dataset_not_found', 'upstream_unavailable'],
    handler: ({ org_id, params, query }) => listItems(deps, org_id, params.dataset_id, query),
  });
}

function createDatasetRoute(deps: DatasetsDeps): Route {
  return defineRoute({
    method: 'post',
    path: ROOT,
    operation_id: 'createDataset',
    summary: 'Create a dataset version',
    description:
      'A name and version never change: the same items again return the existing dataset, and other items return 409 `conflict`. An organization has at most 10,000 datasets, counting each version, with at most 1 GiB of items; past that, the request fails with 409 `conflict`.',
    tag: TAG,
    permission: 'datasets:write',
    audit: { action: 'dataset.create', target: 'dataset' },
    body: createDatasetBody,
    example: {
      name: 'refunds',
      version: '1',
      items: [
        {
          input: { question: 'May I return a sofa?' },
          expected: { answer: 'Within 30 days' },
          metadata: { tags: ['policy'] },
        },
      ],
    },
    status: 201,
    response: datasetInfo,
    errors: ['conflict', 'upstream_unavailable'],
    handler: async ({ org_id, body, audit }) => {
      const { record, made } = await createDataset(deps, org_id, body);
      audit.target(record.dataset_id);
      if (made) audit.changes({ name: record.name, version: record.version, item_count: record.item_count });
      else audit.nothing();
      return { data: infoOf(record) };
    },
  });
}

function createDatasetVersionRoute(deps: DatasetsDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ONE}/versions`,
    operation_id: 'createDatasetVersion',
    summary: 'Create a dataset version from another',
    description:
      'Copies the items of a version into a new version of the same name, with some items added, removed or replaced. The new version exists with all of its items or not at all. If the version exists with the same items, it is returned; with other items, the request fails with 409 `conflict`, also when another request has just made it. Without `version`, a request that is sent again makes another version, so send an `Idempotency-Key`. A version has at most 10,000 items with at most 32 MiB in all.',
    tag: TAG,
    permission: 'datasets:write',
    audit: { action: 'dataset.create_version', target: 'dataset' },
    params: datasetParams,
    body: versionBody,
    example: { add: [{ input: { question: 'May I return a lamp?' }, expected: { answer: 'Within 30 days' } }] },
    status: 201,
    response: datasetInfo,
    errors: ['dataset_not_found', 'conflict', 'rate_limited', 'upstream_unavailable'],
    handler: async ({ org_id, params, body, audit }) => {
      const { record, made, base } = await createVersion(deps, org_id, params.dataset_id, body);
      audit.target(record.dataset_id);
      const { name, version, item_count } = record;
      const [added, removed, replaced] = [body.add.length, body.remove.length, body.replace.length];
      if (made) audit.changes({ name, version, item_count, from_version: base.version, added, removed, replaced });
      else audit.nothing();
      return { data: infoOf(record) };
    },
  });
}

function runDatasetRoute<Item extends z.ZodType>(deps: DatasetsDeps, { item, answered }: RunAnswers<Item>): Route {
  return defineRoute({
    method: 'post',
    path: `${ONE}/run`,
    operation_id: 'runDataset',
    summary: 'Run a dataset',
    description:
      'Sends every item to the model and judges the answers. Each call becomes a trace with `dataset_id`, `dataset_run` and `item_index` in its attributes. The run is an eval: poll `GET /v1/evals/{eval_id}`, read `GET /v1/evals/{eval_id}/scores`, and compare two runs with `GET /v1/evals/compare`.\n\nWith `async` true the response comes at once; otherwise the request waits up to 60 seconds for the run to end. A member whose role lacks `judges:run` needs a grant of it on the judge or the dataset, and `datasets:read` on the dataset.',
    tag: TAG,
    permission: 'judges:run',
    resource: [RESOURCE, { type: 'judge', body: 'judge_id' }],
    grant_needs: { permission: 'datasets:read', resource: RESOURCE },
    audit: { action: 'dataset.run', target: 'eval' },
    params: datasetParams,
    body: runBody,
    example: {
      judge_id: 'judge_0123456789abcdef',
      prompt_version: 'support-answer@3',
      model: 'gpt-4o-mini',
      async: true,
    },
    response: item,
    errors: [
      'dataset_not_found',
      'judge_not_found',
      'prompt_not_found',
      'judge_quota_exceeded',
      'upstream_unavailable',
    ],
    handler: async ({ org_id, params, body, audit, signal }) => {
      const record = await runDataset(deps, org_id, params.dataset_id, body);
      audit.target(record.eval_id);
      audit.changes({
        dataset_id: params.dataset_id,
        judge_id: record.judge_id,
        items: record.progress.total,
        ...record.dataset,
      });
      return { data: await answered(record, body.async === true, signal) };
    },
  });
}

function deleteDatasetRoute(deps: DatasetsDeps): Route {
  return defineRoute({
    method: 'delete',
    path: ONE,
    operation_id: 'deleteDataset',
    summary: 'Delete a dataset',
    description:
      'Deletes the dataset, its items and the grants on it. Returns 409 `conflict` while a running eval uses the dataset; the detail names the eval. Past evals of the dataset and their scores stay readable. The same name and version can be created again with any items: it gets the same `dataset_id`, and its evals cannot be compared with evals over other items.',
    tag: TAG,
    permission: 'datasets:write',
    resource: RESOURCE,
    audit: { action: 'dataset.delete', target: 'dataset', param: 'dataset_id' },
    params: datasetParams,
    response: deletedDataset,
    errors: ['dataset_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ org_id, params: { dataset_id }, audit }) => {
      const { record, grants } = await deleteDataset(deps, org_id, dataset_id);
      const { name, version, item_count } = record;
      audit.changes({ name, version, item_count, ...(grants === 0 ? {} : { grants_removed: grants }) });
      return { data: { dataset_id, deleted: true as const } };
    },
  });
}
