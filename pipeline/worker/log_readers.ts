// Reads the ingest log for the partitions of one worker: one reader for each stream that holds
// messages which these partitions have not taken yet. Takes how far each partition is; returns
// messages, those of a partition in log order.
//
// A partition is read from one stream at a time. Once it has taken everything of a closed stream,
// `isOutdated` says so, and the next `read` continues in the stream after it.
import type { JetStreamClient } from '@nats-io/jetstream';
import type { Logger } from '../../ops/platform/logger.ts';
import type { LogLayout, LogStream } from '../../schemas/log_layout.ts';
import { BUFFERED_BYTES_MAX, type LogMessage, LogReader, PREFETCH_MESSAGES } from './log_reader.ts';

/** Messages that are fetched ahead of each stream at least, so that reading does not wait for each one. */
const PREFETCH_MIN = 2;
/**
 * Maximum messages of all streams that are fetched ahead while messages are small. A partition that
 * was just taken over waits for all messages since its checkpoint.
 */
const PREFETCH_MAX = 256;
/** Bytes that are fetched ahead, as far as the mean size of the messages before foretells. */
const PREFETCH_BYTES = 8 * 1024 * 1024;
/** Share of the newest message in the mean size. */
const MEAN_SHARE = 1 / 16;

/** How far a partition has been read. */
export type ReadState = Readonly<{ partition: number; taken_through: number }>;

/** The partitions that are read from one stream. */
export interface ReadStream {
  readonly name: string;
  readonly partitions: readonly number[];
  /** True if the stream has messages of these partitions that were not taken yet. */
  readonly isBehind: boolean;
}

interface Reading {
  stream: LogStream;
  partitions: number[];
  fromSeq: number;
}

interface OpenReading extends Reading {
  reader: LogReader;
}

export interface LogReadersOptions {
  js: JetStreamClient;
  logger: Logger;
  /** Returns the streams of the log as they are now. */
  layout: () => LogLayout;
  /** How many of these share the bounds of a process; 1 if absent. */
  sharers?: number;
}

export class LogReaders {
  readonly #options: LogReadersOptions;
  #open: readonly OpenReading[] = [];
  /** By partition. */
  #reading = new Map<number, OpenReading>();
  #next = 0;
  /** Mean bytes of the messages taken; Infinity before the first. */
  #meanBytes = Infinity;
  #onMessage: () => void = () => undefined;

  constructor(options: LogReadersOptions) {
    this.#options = options;
  }

  /** Sets the function that is called after each message read, and when a lag becomes known. Call it before `read`. */
  onMessage(listener: () => void): void {
    this.#onMessage = listener;
  }

  /** Messages of the log that were not taken yet. */
  get lag(): number {
    return sumOf(this.#open, lagOf);
  }

  /** Returns whether the log has messages that were not taken yet in the stream of a partition. */
  isBehind(partition: number): boolean {
    const reading = this.#reading.get(partition);
    return reading === undefined || lagOf(reading) > 0;
  }

  /** Bytes of the messages that were read and not taken yet. */
  get bufferedBytes(): number {
    return sumOf(this.#open, ({ reader }) => reader.bufferedBytes);
  }

  /** Messages that were read and not taken yet. */
  get buffered(): number {
    return sumOf(this.#open, ({ reader }) => reader.buffered);
  }

  /** Number of streams that are read. */
  get size(): number {
    return this.#open.length;
  }

  /** The streams that are read, and their partitions. */
  get streams(): ReadStream[] {
    return this.#open.map((reading) => ({
      name: reading.stream.name,
      partitions: reading.partitions,
      isBehind: lagOf(reading) > 0,
    }));
  }

  /**
   * Reads partitions, each from what it has taken on. Buffered messages are discarded and read
   * again.
   */
  read(states: readonly ReadState[]): void {
    this.stop();
    const { js, logger, layout, sharers = 1 } = this.#options;
    const readings = plan(layout(), states);
    const share = (bound: number): number => Math.ceil(bound / readings.length / sharers);
    this.#open = readings.map((reading) => {
      const reader = new LogReader({
        js,
        logger,
        bytesMax: share(BUFFERED_BYTES_MAX),
        prefetch: Math.max(PREFETCH_MIN, share(this.#prefetch)),
      });
      reader.onMessage(this.#onMessage);
      reader.read(reading.stream, reading.partitions, reading.fromSeq);
      return { ...reading, reader };
    });
    for (const reading of this.#open) for (const partition of reading.partitions) this.#reading.set(partition, reading);
  }

  /** Messages of all streams to be fetched ahead. */
  get #prefetch(): number {
    return Math.min(PREFETCH_MAX, Math.max(PREFETCH_MESSAGES, Math.floor(PREFETCH_BYTES / this.#meanBytes)));
  }

  /** True while partitions move from the streams of one generation to those of the next. */
  get isChanging(): boolean {
    return this.#options.layout().isChanging;
  }

  /**
   * Returns whether a partition must be read from another stream than now, or up to the end of a
   * stream that was open, so that `read` is due.
   */
  isOutdated(states: readonly ReadState[]): boolean {
    const layout = this.#options.layout();
    return states.some(({ partition, taken_through }) => {
      const [now, due] = [this.#reading.get(partition)?.stream, layout.readAfter(partition, taken_through).stream];
      return now?.name !== due.name || now.isOpen !== due.isOpen;
    });
  }

  /** Returns the oldest buffered message of a stream, of each stream in turn; undefined if there is none. */
  take(): LogMessage | undefined {
    for (let tries = 0; tries < this.#open.length; tries += 1) {
      const reading = this.#open[this.#next % this.#open.length];
      this.#next += 1;
      const message = reading?.reader.take();
      if (message === undefined) continue;
      const bytes = message.data.length;
      const before = this.#meanBytes;
      this.#meanBytes = before === Infinity ? bytes : before + (bytes - before) * MEAN_SHARE;
      return message;
    }
    return undefined;
  }

  stop(): void {
    for (const { reader } of this.#open) reader.stop();
    this.#open = [];
    this.#reading = new Map();
  }
}

const sumOf = (open: readonly OpenReading[], count: (reading: OpenReading) => number): number =>
  open.reduce((sum, reading) => sum + count(reading), 0);

/** A closed stream has more than the server says: its end, and the messages of the stream after it. */
const lagOf = ({ stream, reader }: OpenReading): number => reader.lag + (stream.isOpen ? 0 : 1);

/** Returns which streams to read, each for its partitions from the one that is furthest behind on. */
export function plan(layout: LogLayout, states: readonly ReadState[]): Reading[] {
  const byName = new Map<string, Reading>();
  for (const { partition, taken_through } of states) {
    const { stream, seq } = layout.readAfter(partition, taken_through);
    const reading = byName.get(stream.name);
    if (reading === undefined) byName.set(stream.name, { stream, partitions: [partition], fromSeq: seq });
    else {
      reading.partitions.push(partition);
      reading.fromSeq = Math.min(reading.fromSeq, seq);
    }
  }
  return [...byName.values()];
}
