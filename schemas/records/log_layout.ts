// Shape of the record that says which streams hold the ingest log. Workers write it when the number
// of streams changes; every process follows it. schemas/log_layout.ts says what follows from it.
import { z } from 'zod';

/** Key of the record in the bucket `service`. */
export const LOG_LAYOUT_KEY = 'streams';

/** Maximum number of streams of the ingest log. */
export const LOG_STREAMS_MAX = 32;

const generation = z.object({
  /** 1 for the first. */
  number: z.int().min(1),
  /** Number of streams. */
  streams: z.int().min(1).max(LOG_STREAMS_MAX),
  /** Number of partitions that the streams share. A single stream has them all, whatever this is. */
  partitions: z.int().min(1),
  /** Positions of the generation begin after this one. */
  offset: z.int().min(0),
  /** Sequence of the last message of each stream; null while messages may still enter. */
  ends: z.array(z.int()).nullable(),
});
export type LogGeneration = z.infer<typeof generation>;

export const logLayoutRecord = z.object({
  /** Oldest first. The last one takes messages. */
  generations: z.array(generation).min(1),
  /** Number of streams of the generation that is about to begin; null while no change begins. */
  next: z.int().min(1).max(LOG_STREAMS_MAX).nullable(),
});
export type LogLayoutRecord = z.infer<typeof logLayoutRecord>;
