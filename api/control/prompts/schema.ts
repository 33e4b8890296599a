// Shapes of the prompt registry: what requests bring and what answers show.
import { z } from 'zod';
import { promptModel, promptName, promptTemplate, promptVersion } from '../../../schemas/records/prompt.ts';
import { isAddressable, NOT_ADDRESSABLE } from '../../../schemas/path_names.ts';
import { offsetQuery } from '../../http/pagination.ts';

const versionGiven = z
  .union([promptVersion.refine(isAddressable, { error: NOT_ADDRESSABLE }), z.int().min(0).transform(String)], {
    error: 'takes 1 to 64 of letters, digits, _ . -',
  })
  .meta({ type: 'string', description: 'Left out: the next whole number' });

export const createBody = z.strictObject({
  name: promptName.refine(isAddressable, { error: NOT_ADDRESSABLE }),
  version: versionGiven.nullish(),
  template: promptTemplate.describe('A text, or the messages of a chat; {{name}} stands for a variable'),
  model: promptModel.nullish().describe('The model it is meant for'),
});
export type CreateBody = z.output<typeof createBody>;

export const listQuery = z.object({
  name: z.string().max(128).optional().describe('Substring of the name, whatever the case'),
  ...offsetQuery,
});
export type ListQuery = z.output<typeof listQuery>;

export const promptParams = z.object({ name: z.string() });
export const promptQuery = z.object({ version: z.string().min(1).optional().describe('Left out: the newest') });

export const promptItem = z
  .object({
    name: z.string(),
    version: z.string(),
    template: promptTemplate,
    model: z.string().nullable(),
    variables: z.array(z.string()).describe('Variables of the template, in order'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Prompt' });
export type PromptItem = z.infer<typeof promptItem>;

export const onePrompt = promptItem.extend({
  versions: z
    .array(z.object({ version: z.string(), model: z.string().nullable(), created_at: z.iso.datetime() }))
    .describe('The newest first: it is the current one'),
});

export const deletedPrompt = z.object({ name: z.string(), deleted: z.literal(true) });
