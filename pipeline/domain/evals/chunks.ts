// How an eval goes on, chunk by chunk. A few of its chunks are in the queue at a time: one that is done lets the next one in, so that
// an eval of 100,000 traces delays another org's by a few chunks only. Pure; times are milliseconds.
import type { EvalProgress, EvalRecord } from '../../../schemas/records/eval.ts';

/** Chunks of one eval that are in the queue or being worked on at a time. */
export const WINDOW_CHUNKS = 4;
/** Traces of a chunk that rules judge: some tens of milliseconds of work. */
export const RULE_CHUNK = 200;
/** Traces or items of a chunk for which models are called: what is done twice when a worker dies is no more than that. */
export const MODEL_CHUNK = 8;
/** An open chunk that nobody was heard of for so long is put into the queue again. */
export const SILENT_MS = 300_000;

/** An eval of nothing has one empty chunk, so that it ends as every other does. */
const chunksOf = ({ total, chunk_size }: EvalProgress): number => Math.max(1, Math.ceil(total / chunk_size));

/** The first chunks, in the queue. */
export function begunProgress(total: number, chunk_size: number, now: number): EvalProgress {
  const progress: EvalProgress = { total, chunk_size, next_chunk: 0, open: [] };
  const next_chunk = Math.min(WINDOW_CHUNKS, chunksOf(progress));
  const open = Array.from({ length: next_chunk }, (_, chunk) => ({ chunk, sent_ms: now, heard_ms: now }));
  return { ...progress, next_chunk, open };
}

/** Which traces or items a chunk holds: from the first up to, without, the second. */
export function chunkRange({ total, chunk_size }: EvalProgress, chunk: number): { from: number; to: number } {
  return { from: Math.min(total, chunk * chunk_size), to: Math.min(total, (chunk + 1) * chunk_size) };
}

/** With a chunk done and the next one let in; null when it was not open: it is done already. */
export function finishedChunk(progress: EvalProgress, chunk: number, now: number): EvalProgress | null {
  const open = progress.open.filter((one) => one.chunk !== chunk);
  if (open.length === progress.open.length) return null;
  if (progress.next_chunk >= chunksOf(progress)) return { ...progress, open };
  open.push({ chunk: progress.next_chunk, sent_ms: now, heard_ms: now });
  return { ...progress, open, next_chunk: progress.next_chunk + 1 };
}

/** With a chunk ended and no other one let in, as the eval cannot go on; null when it was not open. */
export function stoppedChunk(progress: EvalProgress, chunk: number): EvalProgress | null {
  const open = progress.open.filter((one) => one.chunk !== chunk);
  return open.length === progress.open.length ? null : { ...progress, open };
}

/** A running eval as it is after a cancellation: its open chunks stay listed until the workers have let them go. */
export function cancelledEval(record: EvalRecord, now: number): EvalRecord {
  return { ...record, status: 'cancelled', ended_at: new Date(now).toISOString() };
}

/** With a worker heard of that works on a chunk; null when it is not open. */
export function heardChunk(progress: EvalProgress, chunk: number, now: number): EvalProgress | null {
  if (!progress.open.some((one) => one.chunk === chunk)) return null;
  return { ...progress, open: progress.open.map((one) => (one.chunk === chunk ? { ...one, heard_ms: now } : one)) };
}

/** With the chunks that nobody was heard of since `before` put into the queue again; null when there are none. */
export function resentChunks(progress: EvalProgress, before: number, now: number): EvalProgress | null {
  if (!progress.open.some(({ heard_ms }) => heard_ms <= before)) return null;
  return {
    ...progress,
    open: progress.open.map((one) =>
      one.heard_ms <= before ? { chunk: one.chunk, sent_ms: now, heard_ms: now } : one,
    ),
  };
}

/** Whether an eval has nothing left to do: every chunk is done, or, where it cannot go on, none is being worked on. */
export function isThrough({ progress, error }: Pick<EvalRecord, 'progress' | 'error'>): boolean {
  return progress.open.length === 0 && (error !== null || progress.next_chunk >= chunksOf(progress));
}

/** Traces or items whose chunks are done. */
export function doneOf(progress: EvalProgress): number {
  const inChunk = (chunk: number): number => {
    const { from, to } = chunkRange(progress, chunk);
    return to - from;
  };
  const begun = chunkRange(progress, progress.next_chunk).from;
  return begun - progress.open.reduce((sum, { chunk }) => sum + inChunk(chunk), 0);
}
