// Prompts in the shape of Langfuse. In: versions of the registry. Out: {name, version, type, prompt,
// labels, …} with a whole number for the version, which Langfuse's clients require. Versions with
// other names are left out of lists, and named in an error when a label leads to one.
import { z } from 'zod';
import {
  LATEST,
  promptConfig,
  promptLabel,
  promptName,
  type PromptRecord,
  promptTags,
  type PromptTemplate,
  templateType,
} from '../../../schemas/records/prompt.ts';
import { ApiError } from '../../http/errors.ts';

const WHOLE = /^\d{1,9}$/;

const chatItem = z.looseObject({
  type: z.string().optional(),
  role: z.string().optional(),
  content: z.string().optional(),
});

export const createPromptShape = z.object({
  name: promptName,
  type: z.enum(['text', 'chat']).nullish(),
  prompt: z.union([z.string(), z.array(chatItem)]),
  config: promptConfig.nullish(),
  labels: z.array(promptLabel).max(20).nullish(),
  tags: promptTags.nullish(),
  commitMessage: z.string().nullish(),
});

export const labelsShape = z.object({ newLabels: z.array(promptLabel).min(1).max(20) });

/** Returns the template of a prompt that a client of Langfuse creates. @throws ApiError invalid_request */
export function templateOf(prompt: z.output<typeof createPromptShape>['prompt']): PromptTemplate {
  if (typeof prompt === 'string') return prompt;
  return prompt.map(({ type, role, content }, index) => {
    if (type === 'placeholder')
      throw new ApiError('invalid_request', `prompt[${index}]: placeholders are not supported; use a variable`);
    if (role === undefined || content === undefined)
      throw new ApiError('invalid_request', `prompt[${index}]: must have role and content`);
    return { role, content };
  });
}

/** Returns labels without `latest`, which nobody can move. */
export const movable = (labels: readonly string[]): string[] => labels.filter((label) => label !== LATEST);

export const isNumbered = ({ version }: PromptRecord): boolean => WHOLE.test(version);

/**
 * Returns a version as Langfuse's clients read it.
 * @throws ApiError conflict for a version that is not a whole number
 */
export function langfusePrompt(record: PromptRecord, labels: readonly string[], tags: readonly string[]) {
  const { org_id, name, version, template, config = {}, created_at } = record;
  if (!isNumbered(record))
    throw new ApiError(
      'conflict',
      `The version ${version} of ${name} is not a whole number, which clients of Langfuse require. Get it at GET /v1/prompts/${name}.`,
    );
  return {
    id: `${name}@${version}`,
    projectId: org_id,
    name,
    version: Number(version),
    type: templateType(template),
    prompt: typeof template === 'string' ? template : template.map((message) => ({ type: 'chatmessage', ...message })),
    config,
    labels: [...labels],
    tags: [...tags],
    commitMessage: null,
    resolutionGraph: null,
    isActive: null,
    createdBy: 'API',
    createdAt: created_at,
    updatedAt: created_at,
  };
}

/** Answers of these routes, as OpenAPI describes them. */
export const promptAnswer = z
  .looseObject({
    name: z.string(),
    version: z.int(),
    type: z.enum(['text', 'chat']),
    prompt: z.unknown(),
    config: z.record(z.string(), z.unknown()),
    labels: z.array(z.string()),
    tags: z.array(z.string()),
  })
  .meta({ id: 'LangfusePrompt' });
