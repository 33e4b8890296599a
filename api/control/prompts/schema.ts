// Request and response shapes of the prompt registry.
import { z } from 'zod';
import { scoreSource } from '../../http/trace_items.ts';
import {
  LATEST,
  promptConfig,
  promptLabel,
  promptModel,
  promptName,
  promptTemplate,
  promptVersion,
  templateType,
} from '../../../schemas/records/prompt.ts';
import { outcome } from '../../../schemas/formats/fields.ts';
import { isAddressable, NOT_ADDRESSABLE } from '../../../schemas/path_names.ts';
import { offsetQuery } from '../../http/pagination.ts';

const versionGiven = z
  .union([promptVersion.refine(isAddressable, { error: NOT_ADDRESSABLE }), z.int().min(0).transform(String)], {
    error: 'must be 1 to 64 of letters, digits, _ . -',
  })
  .refine((version) => version !== LATEST, { error: 'must not be latest, which always names the newest version' })
  .meta({ type: 'string', description: 'Defaults to the next whole number' });

const TYPES = ['text', 'chat'] as const;

export const createBody = z
  .strictObject({
    name: promptName.refine(isAddressable, { error: NOT_ADDRESSABLE }),
    version: versionGiven.nullish(),
    type: z.enum(TYPES).nullish().describe('text for a template that is a text, chat for messages. Follows from it'),
    template: promptTemplate.describe('A text, or the messages of a chat. {{name}} is a variable'),
    model: promptModel.nullish().describe('Model that the prompt is meant for'),
    config: promptConfig.nullish().describe('Settings of the caller, such as a temperature. Returned as they are'),
  })
  .refine(({ type, template }) => type == null || type === templateType(template), {
    path: ['type'],
    error: 'must be text for a template that is a text, and chat for a list of messages',
  });
export type CreateBody = z.output<typeof createBody>;

export const listQuery = z.object({
  name: z.string().max(128).optional().describe('Prompts whose name contains this text, ignoring case'),
  ...offsetQuery,
});
export type ListQuery = z.output<typeof listQuery>;

export const promptParams = z.object({ name: z.string() });
export const promptQuery = z
  .object({
    version: z.string().min(1).optional().describe('Version to return. Defaults to the newest'),
    label: promptLabel.optional().describe('Label of the version to return. `latest` names the newest'),
  })
  .refine(({ version, label }) => version === undefined || label === undefined, {
    path: ['label'],
    error: 'cannot be given together with version',
  });

export const labelParams = z.object({
  name: z.string(),
  label: promptLabel.refine((label) => label !== LATEST, {
    error: 'must not be latest, which always names the newest version',
  }),
});
export const labelBody = z.strictObject({
  version: z
    .union([promptVersion, z.int().min(0).transform(String)], { error: 'must be a version of the prompt' })
    .meta({ type: 'string', description: 'Version that the label names from now on' }),
});
export const movedLabel = z.object({ name: z.string(), label: z.string(), version: z.string() });
export const deletedLabel = z.object({ name: z.string(), label: z.string(), deleted: z.literal(true) });

export const promptItem = z
  .object({
    name: z.string(),
    version: z.string(),
    type: z.enum(TYPES),
    template: promptTemplate,
    model: z.string().nullable(),
    config: z.record(z.string(), z.unknown()).nullable(),
    labels: z.array(z.string()).describe('Labels that name this version; the newest version has `latest`'),
    variables: z.array(z.string()).describe('Variables of the template, in the order of their first use'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Prompt' });
export type PromptItem = z.infer<typeof promptItem>;

export const onePrompt = promptItem.extend({
  versions: z
    .array(
      z.object({
        version: z.string(),
        type: z.enum(TYPES),
        model: z.string().nullable(),
        labels: z.array(z.string()),
        created_at: z.iso.datetime(),
      }),
    )
    .describe('Versions, newest first. The first is the current one'),
});

export const deletedPrompt = z.object({ name: z.string(), deleted: z.literal(true) });

const DAYS_MAX = 90;
const CALLS_MAX = 50;
const whole = (max: number, fallback: number) => {
  const error = { error: `must be an integer between 1 and ${max}` };
  return z
    .string()
    .regex(/^\d{1,4}$/, error)
    .transform(Number)
    .pipe(z.int().min(1, error).max(max, error))
    .default(fallback)
    .meta({ type: 'integer', minimum: 1, maximum: max, default: fallback });
};
const daysParam = (fallback: number) =>
  whole(DAYS_MAX, fallback).describe('Length of the time, in days of 24 hours up to now');

export const usageQuery = z.object({ days: daysParam(7) });
export const callsQuery = z.object({
  days: daysParam(30),
  limit: whole(CALLS_MAX, 10).describe('Maximum number of calls'),
  version: z.string().min(1).max(512).optional().describe('Calls of this version only'),
});
export type CallsQuery = z.output<typeof callsQuery>;

export const promptCall = z
  .object({
    trace_id: z.string(),
    span_id: z.string(),
    version: z.string().nullable().describe('null for a call that named no version'),
    model: z.string(),
    outcome,
    started_at: z.iso.datetime(),
    duration_ms: z.int().min(0),
    cost_usd: z.number(),
    variables: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('Values of the variables; null where the call sent none, more than 64 KiB, or sampling dropped them'),
  })
  .meta({ id: 'PromptCall' });
export type PromptCall = z.infer<typeof promptCall>;

const usageScore = z.object({
  name: z.string().describe('Name of the score, or of the judge'),
  source: scoreSource,
  judge_id: z.string().nullable().describe('null for source user'),
  count: z.int().min(1).describe('Traces and spans that were scored'),
  mean: z.number().nullable().describe('Mean of the numbers; a boolean counts 1 or 0; null for categories'),
  passed: z.int().min(0).describe('Verdicts of a judge'),
  warned: z.int().min(0),
  failed: z.int().min(0),
});

const usageFigures = {
  calls: z.int().min(0).describe('Model calls'),
  failed_calls: z.int().min(0).describe('Calls whose outcome is error or timeout'),
  error_rate: z.number().min(0).max(1).describe('failed_calls divided by calls'),
  cost_usd: z.number(),
  input_tokens: z.int().min(0),
  output_tokens: z.int().min(0),
  p50_duration_ms: z.number().nullable().describe('Median duration of a call; null without calls'),
  p95_duration_ms: z.number().nullable(),
  first_seen: z.iso.datetime().nullable().describe('Start of the first call'),
  last_seen: z.iso.datetime().nullable().describe('Start of the last call'),
  scores: z.array(usageScore).describe('The most frequent scores of the calls and of their traces'),
};

export const promptUsage = z
  .object({
    name: z.string(),
    since: z.iso.datetime(),
    until: z.iso.datetime(),
    ...usageFigures,
    versions: z
      .array(
        z.object({
          version: z.string().nullable().describe('null for calls that name the prompt without a version'),
          ...usageFigures,
        }),
      )
      .describe('Versions with calls in this time, the last used first'),
  })
  .meta({ id: 'PromptUsage' });
export type PromptUsage = z.infer<typeof promptUsage>;
export type UsageFigures = Omit<PromptUsage, 'name' | 'since' | 'until' | 'versions'>;

export const usageMeta = z.object({
  total: z.int().min(0).describe('Number of versions with calls'),
  truncated: z.boolean().describe('Whether `versions` leaves some out'),
});
