// Calls that judge stored traces by a draft of a judge: from the process that was asked for it to
// one of the workers. The worker sends `previewProgressShape` to the caller's reply subject: at
// once, every second while it judges, and at the end. A message on the stop subject of the reply
// ends the work. Nothing is stored: a call that no worker takes is not run later.
import { z } from 'zod';
import { judgeRecord } from '../records/judge.ts';

export const JUDGE_PREVIEW_SUBJECT = 'judges.preview';
/** Queue group of the workers: one of them receives each call. */
export const JUDGE_PREVIEW_GROUP = 'judge_previews';

/** Returns the subject on which the caller says that it does not wait any longer. */
export const previewStopSubject = (reply: string): string => `${reply}.stop`;

export const previewCallShape = z.object({
  org_id: z.string(),
  judge: judgeRecord,
  trace_ids: z.array(z.string()),
  /** True to say what the judgements would cost, without making them. */
  dry: z.boolean(),
});
export type PreviewCall = z.infer<typeof previewCallShape>;

const previewVerdict = z.object({
  trace_id: z.string(),
  /** True when the judge would judge the trace if it were live. */
  in_scope: z.boolean(),
  score: z.number().nullable(),
  verdict: z.enum(['pass', 'warn', 'fail', 'error']),
  reason: z.string(),
});

const previewResult = z.object({
  verdicts: z.array(previewVerdict),
  /** Traces that the store has, without those that calls of judges made. */
  found: z.int(),
  /** Model calls that were made or, dry, would be made; their tokens and cost, estimated when dry. */
  calls: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  /** null when no price of the model is known. */
  cost_usd: z.number().nullable(),
});
export type PreviewResult = z.infer<typeof previewResult>;

export const previewProgressShape = z.discriminatedUnion('state', [
  z.object({ state: z.literal('running') }),
  z.object({ state: z.literal('ended'), result: previewResult }),
  /** busy: the worker has as many calls as it takes. failed: the store or the upstream is away. */
  z.object({ state: z.enum(['busy', 'no_upstream', 'failed']) }),
]);
export type PreviewEnd = Exclude<z.infer<typeof previewProgressShape>, { state: 'running' }>;
