// Evals and dataset runs in KV: the request, the progress and the results. The API and the workers
// write them, each change as a CAS. Whatever is too large for a record that every process holds is
// in the bucket eval_chunks: the ids of the traces in parts, and the judge and the prompt as of the
// start.
import { z } from 'zod';
import { orgKey } from './org.ts';

export const EVAL_STATUSES = ['running', 'complete', 'failed', 'cancelled'] as const;

export const evalStats = z.object({
  total: z.int().min(0).describe('Number of traces or items that have a result'),
  passed: z.int().min(0),
  warned: z.int().min(0),
  failed: z.int().min(0),
  errors: z.int().min(0).describe('Number of results that could not be scored; they count in neither mean nor median'),
  mean_score: z.number().nullable().describe('null when nothing was scored'),
  p50_score: z
    .number()
    .nullable()
    .describe('Median: the middle score, or the mean of the two in the middle; null when nothing was scored'),
});

/** Progress in chunks, of equal size but the last. A few of them are in the queue at a time. */
export const evalProgress = z.object({
  /** Number of traces or items. */
  total: z.int().min(0),
  chunk_size: z.int().min(1),
  /** Index of the first chunk that was never enqueued. */
  next_chunk: z.int().min(0),
  /** Chunks that are in the queue or held by a worker. */
  open: z.array(
    z.object({
      chunk: z.int().min(0),
      /**
       * Time at which the chunk was enqueued, milliseconds since the epoch; it is part of the
       * message's id.
       */
      sent_ms: z.int(),
      /** Last sign of life of a worker that holds the chunk, milliseconds since the epoch. */
      heard_ms: z.int(),
    }),
  ),
});
export type EvalProgress = z.infer<typeof evalProgress>;

/** The items to run, and how to run them. */
export const evalDataset = z.object({
  dataset_id: z.string(),
  /** Prompt as name@version; null sends the input of each item as it is. */
  prompt_version: z.string().nullable(),
  model: z.string(),
  /**
   * Digest of the dataset's items: a dataset that was deleted and created again has the same id.
   * Absent from older records.
   */
  digest: z.string().optional(),
});

export const evalRecord = z.object({
  org_id: z.string(),
  eval_id: z.string(),
  judge_id: z.string(),
  judge_version: z.int().min(1),
  /** null for an eval over stored traces. */
  dataset: evalDataset.nullable(),
  /** True when models are called: such work is slow, and has a lane of its own. */
  calls_model: z.boolean(),
  status: z.enum(EVAL_STATUSES),
  progress: evalProgress,
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
  /** Why the eval cannot go on. It fails when the chunks that are under way have ended too. */
  error: z.string().nullable(),
  /**
   * null while the eval is running. For a cancelled eval, provisional until it is settled: a score
   * that was being written is counted then.
   */
  stats: evalStats.nullable(),
  /** The complete eval that it is compared with; null for none. */
  previous: z.object({ eval_id: z.string(), mean_score: z.number() }).nullable(),
  /**
   * True once everything that follows the end is done: a regression is published, and the parts are
   * deleted.
   */
  settled: z.boolean(),
});
export type EvalRecord = z.infer<typeof evalRecord>;

export const evalKey = (org_id: string, eval_id: string): string => `${orgKey(org_id)}.${eval_id}`;

/**
 * Trace ids of a part: a multiple of every chunk size, so that no chunk spans two parts. Some 260
 * kB with the longest ids.
 */
export const PART_IDS = 2000;
/** Keys in eval_chunks. */
export const evalPartKey = (org_id: string, eval_id: string, part: number): string =>
  `${evalKey(org_id, eval_id)}.ids.${part}`;
export const evalJudgeKey = (org_id: string, eval_id: string): string => `${evalKey(org_id, eval_id)}.judge`;
export const evalPromptKey = (org_id: string, eval_id: string): string => `${evalKey(org_id, eval_id)}.prompt`;

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseEval(text: string): EvalRecord {
  return evalRecord.parse(JSON.parse(text));
}
