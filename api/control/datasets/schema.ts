// Request and response shapes of datasets.
import { z } from 'zod';
import { datasetItem } from '../../../schemas/records/dataset.ts';
import { isAddressable, NOT_ADDRESSABLE } from '../../../schemas/path_names.ts';
import { offsetQuery } from '../../http/pagination.ts';

/** Maximum items of one dataset. The body size limit bounds them too. */
export const ITEMS_MAX = 10_000;
/** Maximum bytes of one item as JSON. */
export const ITEM_BYTES_MAX = 512 * 1024;

const fields = z.record(z.string(), z.unknown());
const name = z.string().min(1).max(200);
const newName = name.refine(isAddressable, { error: NOT_ADDRESSABLE });
const newVersion = z.string().min(1).max(100).refine(isAddressable, { error: NOT_ADDRESSABLE });

const item = z.strictObject({
  input: fields.describe(
    'Values of the prompt variables: {{question}} is input.question. Without a prompt, the fields messages (a list of {role, content}), prompt or text are sent as they are; any other input is sent as JSON',
  ),
  expected: fields.nullish().describe('What a good answer contains. LLM judges see it as {{expected}}'),
  metadata: fields.nullish(),
});

export const createDatasetBody = z.strictObject({
  name: newName,
  version: newVersion,
  items: z.array(item).min(1).max(ITEMS_MAX),
});
export type CreateDatasetBody = z.output<typeof createDatasetBody>;

export const versionBody = z.strictObject({
  version: newVersion
    .nullish()
    .describe(
      'Name of the new version. Defaults to the whole number after the highest one among the versions of the dataset',
    ),
  add: z.array(item).max(ITEMS_MAX).default([]).describe('Items that go after the last one'),
  remove: z
    .array(z.int().min(0))
    .max(ITEMS_MAX)
    .default([])
    .describe('`item_index` of items that the new version leaves out'),
  replace: z
    .array(item.extend({ item_index: z.int().min(0) }))
    .max(ITEMS_MAX)
    .default([])
    .describe('Items that take the place of the ones with their `item_index`'),
});
export type VersionBody = z.output<typeof versionBody>;

export const datasetInfo = z
  .object({
    dataset_id: z.string(),
    name: z.string(),
    version: z.string(),
    item_count: z.int(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Dataset' });
export type DatasetInfo = z.infer<typeof datasetInfo>;

export const datasetParams = z.object({ dataset_id: z.string() });
export const datasetsQuery = z
  .object({ ...offsetQuery, name: name.optional().describe('Versions of this dataset only') })
  .strip();
export type DatasetsQuery = z.output<typeof datasetsQuery>;
export const indexedItem = datasetItem
  .extend({ item_index: z.int().describe('Position in the dataset, from 0') })
  .meta({ id: 'DatasetItem' });
export type IndexedItem = z.infer<typeof indexedItem>;

export const runBody = z.strictObject({
  judge_id: z.string().min(1).max(128),
  prompt_version: z
    .string()
    .min(1)
    .max(256)
    .nullish()
    .describe(
      'Prompt as name@version or name@label, or a name for its newest version. Without it, inputs are sent as they are',
    ),
  model: z.string().min(1).max(256).nullish().describe('Model to call. Defaults to the model of the prompt'),
  async: z
    .boolean()
    .nullish()
    .describe('true returns at once. false (default) waits up to 60 seconds and returns the run as it then is'),
});
export type RunBody = z.output<typeof runBody>;

export const deletedDataset = z.object({ dataset_id: z.string(), deleted: z.literal(true) });
