// Progress of an eval, chunk by chunk. Only a few chunks of an eval are queued at a time; a
// finished chunk admits the next one, so that an eval of 100,000 traces delays another
// organization's by a few chunks only. Pure; times are milliseconds.
import type { EvalProgress, EvalRecord } from '../../../schemas/records/eval.ts';

/** Maximum chunks of one eval that are queued or in work at a time. */
export const WINDOW_CHUNKS = 4;
/** Traces in a chunk that rules judge: some tens of milliseconds of work. */
export const RULE_CHUNK = 200;
/**
 * Traces or items in a chunk that a model judges. It bounds the work that is repeated when a worker
 * dies.
 */
export const MODEL_CHUNK = 8;
/** An open chunk is queued again after this time without a heartbeat. */
export const SILENT_MS = 300_000;

/** An eval without traces has one empty chunk, so that it ends as every other does. */
const chunksOf = ({ total, chunk_size }: EvalProgress): number => Math.max(1, Math.ceil(total / chunk_size));

/** Returns the progress of an eval that starts, with its first chunks queued. */
export function begunProgress(total: number, chunk_size: number, now: number): EvalProgress {
  const progress: EvalProgress = { total, chunk_size, next_chunk: 0, open: [] };
  const next_chunk = Math.min(WINDOW_CHUNKS, chunksOf(progress));
  const open = Array.from({ length: next_chunk }, (_, chunk) => ({ chunk, sent_ms: now, heard_ms: now }));
  return { ...progress, next_chunk, open };
}

/** Returns the range of traces or items in a chunk: `from` inclusive, `to` exclusive. */
export function chunkRange({ total, chunk_size }: EvalProgress, chunk: number): { from: number; to: number } {
  return { from: Math.min(total, chunk * chunk_size), to: Math.min(total, (chunk + 1) * chunk_size) };
}

/**
 * Returns the progress with a chunk finished and the next one queued; null when the chunk was not
 * open and so is done already.
 */
export function finishedChunk(progress: EvalProgress, chunk: number, now: number): EvalProgress | null {
  const open = progress.open.filter((one) => one.chunk !== chunk);
  if (open.length === progress.open.length) return null;
  if (progress.next_chunk >= chunksOf(progress)) return { ...progress, open };
  open.push({ chunk: progress.next_chunk, sent_ms: now, heard_ms: now });
  return { ...progress, open, next_chunk: progress.next_chunk + 1 };
}

/**
 * Returns the progress with a chunk ended and no successor queued, since the eval cannot continue;
 * null when it was not open.
 */
export function stoppedChunk(progress: EvalProgress, chunk: number): EvalProgress | null {
  const open = progress.open.filter((one) => one.chunk !== chunk);
  return open.length === progress.open.length ? null : { ...progress, open };
}

/**
 * Returns a running eval after its cancellation. Its open chunks stay listed until their workers
 * have stopped.
 */
export function cancelledEval(record: EvalRecord, now: number): EvalRecord {
  return { ...record, status: 'cancelled', ended_at: new Date(now).toISOString() };
}

/** Returns the progress with a new heartbeat of a chunk; null when the chunk is not open. */
export function heardChunk(progress: EvalProgress, chunk: number, now: number): EvalProgress | null {
  if (!progress.open.some((one) => one.chunk === chunk)) return null;
  return { ...progress, open: progress.open.map((one) => (one.chunk === chunk ? { ...one, heard_ms: now } : one)) };
}

/**
 * Returns the progress with all chunks silent since `before` queued again; null when there are
 * none.
 */
export function resentChunks(progress: EvalProgress, before: number, now: number): EvalProgress | null {
  if (!progress.open.some(({ heard_ms }) => heard_ms <= before)) return null;
  return {
    ...progress,
    open: progress.open.map((one) =>
      one.heard_ms <= before ? { chunk: one.chunk, sent_ms: now, heard_ms: now } : one,
    ),
  };
}

/**
 * Returns true when an eval has nothing left to do: all chunks are done or, if it cannot continue,
 * none is open.
 */
export function isThrough({ progress, error }: Pick<EvalRecord, 'progress' | 'error'>): boolean {
  return progress.open.length === 0 && (error !== null || progress.next_chunk >= chunksOf(progress));
}

/** Returns the number of traces or items in finished chunks. */
export function doneOf(progress: EvalProgress): number {
  const inChunk = (chunk: number): number => {
    const { from, to } = chunkRange(progress, chunk);
    return to - from;
  };
  const begun = chunkRange(progress, progress.next_chunk).from;
  return begun - progress.open.reduce((sum, { chunk }) => sum + inChunk(chunk), 0);
}
