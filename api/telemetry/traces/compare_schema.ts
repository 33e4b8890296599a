// Shapes of comparing two traces and of replaying one.
import { z } from 'zod';
import { COMPARE_FIELDS, DEFAULT_FIELDS, isCompareField } from '../../../pipeline/domain/traces/compare.ts';
import { REPLAY_CALLS_MAX } from '../../../pipeline/domain/traces/replay.ts';

const FIELDS_MAX = 50;
const FIELD_CHARS_MAX = 256;

const field = z
  .string()
  .max(FIELD_CHARS_MAX)
  .refine(isCompareField, { error: `takes ${COMPARE_FIELDS.join(', ')} or judge_score.<name of a judge>` });

export const compareBody = z.strictObject({
  baseline_trace_id: z.string().min(1),
  candidate_trace_id: z.string().min(1),
  fields: z
    .array(field)
    .max(FIELDS_MAX)
    .transform((fields) => (fields.length === 0 ? [...DEFAULT_FIELDS] : [...new Set(fields)]))
    .default([...DEFAULT_FIELDS])
    .describe(`Of ${COMPARE_FIELDS.join(', ')}, judge_score.<name of a judge>; left out: all but prompt and response`),
});
export type CompareBody = z.output<typeof compareBody>;

const value = z.union([z.number(), z.string(), z.array(z.string()), z.null()]);

export const comparison = z
  .object({
    baseline_trace_id: z.string(),
    candidate_trace_id: z.string(),
    fields: z.array(
      z.object({
        field: z.string(),
        baseline: value,
        candidate: value,
        delta: z.number().nullable().describe('candidate - baseline; null where one of them is no number'),
        delta_percent: z.number().nullable().describe('Of the baseline; null where that is 0 and the candidate is not'),
        differs: z
          .boolean()
          .describe(
            "Numbers: the change is beyond the policy's compare_threshold_percent. Everything else: it is not the same",
          ),
      }),
    ),
  })
  .meta({ id: 'TraceComparison' });

export const replayBody = z.strictObject({
  commit: z
    .boolean()
    .default(false)
    .describe(
      'false renders the prompts and calls no model; true calls the models, and stores what they answer as a new trace',
    ),
});

export const replayed = z
  .object({
    trace_id: z.string(),
    commit: z.boolean(),
    spans: z
      .array(
        z.object({
          span_id: z.string(),
          prompt_name: z
            .string()
            .nullable()
            .describe('null where the span names no prompt: it is asked what it was asked'),
          prompt_version: z.string().nullable(),
          model: z.string().describe("The prompt's, else the span's"),
          old_prompt: z.string(),
          new_prompt: z.string(),
          old_response: z.string(),
          new_response: z.string().nullable().describe('null in a dry run'),
        }),
      )
      .max(REPLAY_CALLS_MAX)
      .describe('Model calls of the trace, in the order in which they were made'),
    new_trace_id: z.string().nullable().describe('null in a dry run'),
  })
  .meta({ id: 'TraceReplay' });
export type Replayed = z.infer<typeof replayed>;
