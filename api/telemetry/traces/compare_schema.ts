// Request and response shapes of the comparison and the replay of traces.
import { z } from 'zod';
import { COMPARE_FIELDS, DEFAULT_FIELDS, isCompareField } from '../../../pipeline/domain/traces/compare.ts';
import { REPLAY_CALLS_MAX } from '../../../pipeline/domain/traces/replay.ts';

const FIELDS_MAX = 50;
const FIELD_CHARS_MAX = 256;

const field = z
  .string()
  .max(FIELD_CHARS_MAX)
  .refine(isCompareField, { error: `must be ${COMPARE_FIELDS.join(', ')} or judge_score.<name of a judge>` });

export const compareBody = z.strictObject({
  baseline_trace_id: z.string().min(1),
  candidate_trace_id: z.string().min(1),
  fields: z
    .array(field)
    .max(FIELDS_MAX)
    .transform((fields) => (fields.length === 0 ? [...DEFAULT_FIELDS] : [...new Set(fields)]))
    .default([...DEFAULT_FIELDS])
    .describe(
      `Fields to compare, of ${COMPARE_FIELDS.join(', ')}, judge_score.<name of a judge>. Defaults to all but prompt and response`,
    ),
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
        delta: z.number().nullable().describe('candidate minus baseline; null if one of them is not a number'),
        delta_percent: z
          .number()
          .nullable()
          .describe('delta in percent of the baseline; null if the baseline is 0 and the candidate is not'),
        differs: z
          .boolean()
          .describe(
            'For numbers, whether the change exceeds compare_threshold_percent of the policy. For other values, whether they differ',
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
      'false renders the prompts and calls no model. true calls the models and stores their answers as a new trace',
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
            .describe('null if the span names no prompt; the call then gets its original input'),
          prompt_version: z.string().nullable(),
          model: z.string().describe('Model of the prompt, or else of the span'),
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
