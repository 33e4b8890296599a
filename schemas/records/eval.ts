// Evals and dataset runs as stored in KV: what was asked, how far it is, what came of it. Written by the API that takes them and by
// the workers that carry them out, each change a CAS write. In: the text of a value. Out: the record.
// What is too large for a record that every process holds lies in the bucket eval_chunks: the ids of the traces in parts, the
// judge as it was, the prompt.
import { z } from 'zod';
import { orgKey } from './org.ts';

export const EVAL_STATUSES = ['running', 'complete', 'failed', 'cancelled'] as const;

export const evalStats = z.object({
  total: z.int().min(0).describe('Traces or items that have a result'),
  passed: z.int().min(0),
  warned: z.int().min(0),
  failed: z.int().min(0),
  errors: z.int().min(0).describe('Those that could not be scored; they count in neither mean nor median'),
  mean_score: z.number().nullable().describe('null where nothing was scored'),
  p50_score: z
    .number()
    .nullable()
    .describe('Median: the middle score, or the mean of the two in the middle; null where nothing was scored'),
});

/** How far an eval is, in chunks of equal size but the last. A few of them are in the queue at a time. */
export const evalProgress = z.object({
  /** Traces or items. */
  total: z.int().min(0),
  chunk_size: z.int().min(1),
  /** The first chunk that was never in the queue. */
  next_chunk: z.int().min(0),
  /** Chunks that are in the queue or being worked on. */
  open: z.array(
    z.object({
      chunk: z.int().min(0),
      /** When it was put into the queue, milliseconds: names that message. */
      sent_ms: z.int(),
      /** When a worker was last heard of that works on it, milliseconds. */
      heard_ms: z.int(),
    }),
  ),
});
export type EvalProgress = z.infer<typeof evalProgress>;

/** Which items are run, and how. */
export const evalDataset = z.object({
  dataset_id: z.string(),
  /** name@version; null: the input of each item is sent as it is. */
  prompt_version: z.string().nullable(),
  model: z.string(),
  /** Digest of the dataset's items. A dataset that was deleted and made again has the same id; absent from older records. */
  digest: z.string().optional(),
});

export const evalRecord = z.object({
  org_id: z.string(),
  eval_id: z.string(),
  judge_id: z.string(),
  judge_version: z.int().min(1),
  /** null for an eval over stored traces. */
  dataset: evalDataset.nullable(),
  /** Whether models are called: such work is slow, and has a lane of its own. */
  calls_model: z.boolean(),
  status: z.enum(EVAL_STATUSES),
  progress: evalProgress,
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
  /** Why it cannot go on. It has failed when the chunks that were being worked on have ended too. */
  error: z.string().nullable(),
  /** null while it is running. Of a cancelled eval provisional until it is settled: a score that was being written counts then. */
  stats: evalStats.nullable(),
  /** The complete eval before it that it is held against; null for none. */
  previous: z.object({ eval_id: z.string(), mean_score: z.number() }).nullable(),
  /** Whether all that its end brings is done: a regression told, its parts taken away. */
  settled: z.boolean(),
});
export type EvalRecord = z.infer<typeof evalRecord>;

export const evalKey = (org_id: string, eval_id: string): string => `${orgKey(org_id)}.${eval_id}`;

/** Trace ids of a part; a multiple of every size of chunk, so that no chunk lies across two parts. Some 260 kB with the longest ids. */
export const PART_IDS = 2000;
/** Keys in eval_chunks. */
export const evalPartKey = (org_id: string, eval_id: string, part: number): string =>
  `${evalKey(org_id, eval_id)}.ids.${String(part)}`;
export const evalJudgeKey = (org_id: string, eval_id: string): string => `${evalKey(org_id, eval_id)}.judge`;
export const evalPromptKey = (org_id: string, eval_id: string): string => `${evalKey(org_id, eval_id)}.prompt`;

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parseEval(text: string): EvalRecord {
  return evalRecord.parse(JSON.parse(text));
}
