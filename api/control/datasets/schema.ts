// Shapes of the dataset endpoints: what they take, and what they answer.
import { z } from 'zod';
import { datasetItem } from '../../../schemas/records/dataset.ts';
import { isAddressable, NOT_ADDRESSABLE } from '../../../schemas/path_names.ts';
import { offsetQuery } from '../../http/pagination.ts';

/** Items of one dataset; the size of a body bounds them too. */
const ITEMS_MAX = 10_000;
/** Of one item as JSON. */
export const ITEM_BYTES_MAX = 512 * 1024;

const fields = z.record(z.string(), z.unknown());
const name = z.string().min(1).max(200);
const newName = name.refine(isAddressable, { error: NOT_ADDRESSABLE });
const newVersion = z.string().min(1).max(100).refine(isAddressable, { error: NOT_ADDRESSABLE });

const item = z.strictObject({
  input: fields.describe(
    'Values of the variables of a prompt: {{question}} is input.question. Without a prompt: messages (a list of {role, content}), prompt or text is sent as it is, anything else as JSON.',
  ),
  expected: fields.nullish().describe('What a good answer holds; LLM judges see it as {{expected}}'),
  metadata: fields.nullish(),
});

export const createDatasetBody = z.strictObject({
  name: newName,
  version: newVersion,
  items: z.array(item).min(1).max(ITEMS_MAX),
});
export type CreateDatasetBody = z.output<typeof createDatasetBody>;

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
  .object({ ...offsetQuery, name: name.optional().describe('Versions of this dataset') })
  .strip();
export type DatasetsQuery = z.output<typeof datasetsQuery>;
export const indexedItem = datasetItem
  .extend({ item_index: z.int().describe('From 0, in the order given') })
  .meta({ id: 'DatasetItem' });
export type IndexedItem = z.infer<typeof indexedItem>;

export const runBody = z.strictObject({
  judge_id: z.string().min(1).max(128),
  prompt_version: z
    .string()
    .min(1)
    .max(256)
    .nullish()
    .describe('name@version of a prompt, or a name for its newest; left out: inputs are sent as they are'),
  model: z.string().min(1).max(256).nullish().describe('Left out: the model of the prompt'),
  async: z.boolean().nullish().describe('false (default): waits up to 60 s and answers with the final run'),
});
export type RunBody = z.output<typeof runBody>;

export const deletedDataset = z.object({ dataset_id: z.string(), deleted: z.literal(true) });
