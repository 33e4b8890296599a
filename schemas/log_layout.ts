// The streams of the ingest log: which partitions each one holds, and how a position in the log
// follows from a stream and a sequence in it. Takes the record of the streams; returns streams,
// subjects and positions. Pure. It is the only place that turns sequences into positions and back.
//
// A position names one message of the whole log. Positions of a partition rise in the order in
// which its messages are read; those of partitions in different streams say nothing about order.
// With one stream and offset 0, a position is the sequence.
import type { LogGeneration, LogLayoutRecord } from './records/log_layout.ts';
import { endSubject, INGEST_SUBJECTS, ingestStream, ingestSubject, mixedSubject } from './streams.ts';

/** One stream of the ingest log. */
export class LogStream {
  readonly name: string;
  /** Subject of messages that carry events of several partitions of this stream. */
  readonly mixed: string;
  /** Subject of the last message, which is stored once no other can enter. */
  readonly endSubject: string;
  /** False once the next generation has begun: no message enters. */
  readonly isOpen: boolean;
  readonly #generation: LogGeneration;
  readonly #index: number;

  constructor(generation: LogGeneration, index: number, isOpen: boolean) {
    this.#generation = generation;
    this.#index = index;
    this.isOpen = isOpen;
    this.name = ingestStream(generation.number, index);
    this.mixed = mixedSubject(generation.number, index);
    this.endSubject = endSubject(generation.number, index);
  }

  /** Number of streams among which the bytes of the log are divided. */
  get siblings(): number {
    return this.#generation.streams;
  }

  /** Sequence of the last message; null while messages may still enter. */
  get end(): number | null {
    return this.#generation.ends?.[this.#index] ?? null;
  }

  /** Subjects of the messages that enter the stream. */
  get subjects(): string[] {
    const { number, streams, partitions } = this.#generation;
    if (number === 1 && streams === 1) return [INGEST_SUBJECTS];
    return [this.mixed, ...this.partitionsOf(partitions).map(ingestSubject)];
  }

  has(partition: number): boolean {
    return rangeOf(this.#generation, partition) === this.#index;
  }

  /** Returns those of the first `count` partitions that this stream has. */
  partitionsOf(count: number): number[] {
    return Array.from({ length: count }, (_, partition) => partition).filter((partition) => this.has(partition));
  }

  /** Returns the position of the message with a sequence. */
  position(seq: number): number {
    const { offset, streams } = this.#generation;
    return offset + (seq - 1) * streams + this.#index + 1;
  }

  /** Returns the sequence of the newest message at or below a position; 0 if there is none. */
  seqThrough(position: number): number {
    const { offset, streams } = this.#generation;
    return Math.max(0, Math.floor((position - offset - this.#index - 1) / streams) + 1);
  }
}

/** The range of partitions, counted from 0, to which a partition belongs. */
function rangeOf({ streams, partitions }: LogGeneration, partition: number): number {
  return streams === 1 ? 0 : Math.floor((partition * streams) / partitions);
}

export class LogLayout {
  readonly record: LogLayoutRecord;
  /** Every stream, oldest generation first, in the order of their ranges. */
  readonly streams: readonly LogStream[];
  /** Streams that take messages, in the order of their ranges. */
  readonly open: readonly LogStream[];
  readonly #names: ReadonlyMap<string, LogStream>;

  constructor(record: LogLayoutRecord) {
    this.record = record;
    const last = record.generations.length - 1;
    this.streams = record.generations.flatMap((generation, at) =>
      Array.from({ length: generation.streams }, (_, index) => new LogStream(generation, index, at === last)),
    );
    this.open = this.streams.filter(({ isOpen }) => isOpen);
    this.#names = new Map(this.streams.map((stream) => [stream.name, stream]));
  }

  /** True while streams of an older generation hold messages, or are about to be closed. */
  get isChanging(): boolean {
    return this.record.generations.length > 1 || this.record.next !== null;
  }

  /** Returns the stream with a name; undefined for a stream that is none of this log. */
  named(name: string): LogStream | undefined {
    return this.#names.get(name);
  }

  /** Returns the streams that may hold messages of a partition, oldest first. */
  holding(partition: number): LogStream[] {
    return this.streams.filter((stream) => stream.has(partition));
  }

  /**
   * Returns the stream in which a partition is read on after a position, and the sequence from which
   * on. A stream that is closed is read until its end is known and reached.
   */
  readAfter(partition: number, position: number): { stream: LogStream; seq: number } {
    const holding = this.holding(partition);
    const stream = holding.find((one) => one.end === null || one.seqThrough(position) < one.end);
    if (stream === undefined) throw new RangeError(`partition ${partition} is in no stream of the log`);
    return { stream, seq: stream.seqThrough(position) + 1 };
  }

  /** Returns the stream and the sequence of a position; null if no stream of this log has it. */
  at(position: number): { stream: LogStream; seq: number } | null {
    const generation = this.record.generations.findLast(({ offset }) => position > offset);
    if (generation === undefined) return null;
    const index = (position - generation.offset - 1) % generation.streams;
    const stream = this.named(ingestStream(generation.number, index));
    return stream === undefined ? null : { stream, seq: stream.seqThrough(position) };
  }
}

/** Returns the record of a log that has just begun. */
export const firstLayout = (streams: number, partitions: number): LogLayoutRecord => ({
  generations: [{ number: 1, streams, partitions, offset: 0, ends: null }],
  next: null,
});

/**
 * Positions that are left free between two generations. Messages that were on their way when a
 * stream was closed are stored after its sequence was read, at most a few thousand.
 */
const OFFSET_GAP = 2 ** 32;

/**
 * Returns the record once the wished generation has begun.
 * @param lastSeqs sequence of the newest message of each stream of the present generation
 */
export function nextGeneration(layout: LogLayout, lastSeqs: readonly number[], partitions: number): LogLayoutRecord {
  const { generations, next } = layout.record;
  const last = generations.at(-1);
  if (next === null || last === undefined) return layout.record;
  const newest = Math.max(last.offset, ...layout.open.map((stream, at) => stream.position(lastSeqs[at] ?? 0)));
  const generation = { number: last.number + 1, streams: next, partitions, offset: newest + OFFSET_GAP, ends: null };
  return { generations: [...generations, generation], next: null };
}
