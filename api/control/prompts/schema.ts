// Request and response shapes of the prompt registry.
import { z } from 'zod';
import { promptModel, promptName, promptTemplate, promptVersion } from '../../../schemas/records/prompt.ts';
import { isAddressable, NOT_ADDRESSABLE } from '../../../schemas/path_names.ts';
import { offsetQuery } from '../../http/pagination.ts';

const versionGiven = z
  .union([promptVersion.refine(isAddressable, { error: NOT_ADDRESSABLE }), z.int().min(0).transform(String)], {
    error: 'must be 1 to 64 of letters, digits, _ . -',
  })
  .meta({ type: 'string', description: 'Defaults to the next whole number' });

export const createBody = z.strictObject({
  name: promptName.refine(isAddressable, { error: NOT_ADDRESSABLE }),
  version: versionGiven.nullish(),
  template: promptTemplate.describe('A text, or the messages of a chat. {{name}} is a variable'),
  model: promptModel.nullish().describe('Model that the prompt is meant for'),
});
export type CreateBody = z.output<typeof createBody>;

export const listQuery = z.object({
  name: z.string().max(128).optional().describe('Prompts whose name contains this text, ignoring case'),
  ...offsetQuery,
});
export type ListQuery = z.output<typeof listQuery>;

export const promptParams = z.object({ name: z.string() });
export const promptQuery = z.object({
  version: z.string().min(1).optional().describe('Version to return. Defaults to the newest'),
});

export const promptItem = z
  .object({
    name: z.string(),
    version: z.string(),
    template: promptTemplate,
    model: z.string().nullable(),
    variables: z.array(z.string()).describe('Variables of the template, in the order of their first use'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Prompt' });
export type PromptItem = z.infer<typeof promptItem>;

export const onePrompt = promptItem.extend({
  versions: z
    .array(z.object({ version: z.string(), model: z.string().nullable(), created_at: z.iso.datetime() }))
    .describe('Versions, newest first. The first is the current one'),
});

export const deletedPrompt = z.object({ name: z.string(), deleted: z.literal(true) });
