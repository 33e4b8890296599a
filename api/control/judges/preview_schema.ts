// Request and response shapes of a preview: what a draft of a judge says of stored traces.
import { z } from 'zod';
import { createBody } from './schema.ts';

const PREVIEW_TRACES_MAX = 20;
const ID_CHARS_MAX = 128;

export const previewBody = z.strictObject({
  draft: createBody.describe('The judge as it would be created; `enabled` has no effect'),
  trace_ids: z
    .array(z.string().min(1).max(ID_CHARS_MAX))
    .min(1)
    .max(PREVIEW_TRACES_MAX)
    .describe('Traces to judge. A trace that is named twice is judged once'),
  dry: z
    .boolean()
    .nullish()
    .describe('true only says how many model calls the preview would make and what they would cost. Defaults to false'),
});
export type PreviewBody = z.output<typeof previewBody>;

/** Model calls of judgements, made or estimated. */
const judgingPrice = {
  calls: z.int().describe('Model calls. 0 for a deterministic judge'),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cost_usd: z.number().nullable().describe('null if no price of the model is known'),
};

export const previewAnswer = z
  .object({
    dry: z.boolean(),
    verdicts: z
      .array(
        z.object({
          trace_id: z.string(),
          in_scope: z.boolean().describe('Whether the judge would judge the trace if it were live'),
          score: z.number().nullable().describe('null if the verdict is error'),
          verdict: z.enum(['pass', 'warn', 'fail', 'error']),
          reason: z.string(),
        }),
      )
      .describe('In the order of trace_ids. Empty if dry'),
    found: z
      .int()
      .describe(
        'Number of the traces that are judged. Those that the organization does not have, and those that calls of judges made, have no verdict',
      ),
    ...judgingPrice,
    quota: z
      .object({
        limit: z.int().nullable().describe('Policy field judge_quota_calls; null for no limit'),
        used: z.int().describe('Calls of LLM judges in this period, those of the preview included'),
      })
      .nullable()
      .describe('null for a deterministic judge'),
  })
  .meta({ id: 'JudgePreview' });
export type PreviewAnswer = z.infer<typeof previewAnswer>;
