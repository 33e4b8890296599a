// Counts the use of events in the ingest log that have not landed, for an API process that has just
// started: no other process may know of it, and the sums of the store lack it. Takes the log from
// the oldest checkpoint on; passes on each event of the organizations in question with its
// position. Decodes one message at a time and prefetches PREFETCH_MESSAGES; a read that fails
// resumes where it stopped.
import { setTimeout as sleep } from 'node:timers/promises';
import { DeliverPolicy } from '@nats-io/jetstream';
import { z } from 'zod';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { streamState } from '../../../ops/platform/nats/log_streams.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import type { LogStream } from '../../../schemas/log_layout.ts';
import { ingestSubject } from '../../../schemas/streams.ts';
import { partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import { FINGERPRINT_HEADER, ingestBatchCodec } from '../../../schemas/codec.ts';
import type { EnteringEvent } from './uses.ts';

/**
 * Maximum number of messages fetched ahead; each has at most about 1 MiB, or 8 MiB where one event
 * is that large.
 */
const PREFETCH_MESSAGES = 16;
const RETRY_MS = 250;
/**
 * A read without a message for this long is opened again: the server may have lost the consumer.
 */
const SILENT_MS = 2000;

const checkpointRecord = z.looseObject({ checkpoint: z.int() });

export interface BacklogOptions {
  log: Pick<Log, 'js' | 'jsm' | 'bucket' | 'streams'>;
  /** Number of partitions of the ingest log. */
  partitions: number;
  /** Position of the newest message to count, by partition; none of a partition that is not counted. */
  newest: ReadonlyMap<number, number>;
  /** Returns the accounts that are to count an event. */
  accountsOf: (event: { org_id: string; key_id?: string }) => readonly string[];
  /** Takes the events of one account in one message of the log. */
  take: (account: string, events: readonly EnteringEvent[], position: number) => void;
  signal: AbortSignal;
  onProblem: ReportProblem;
}

/** Resolves with true once every message has been counted, with false when it was aborted. */
export async function countBacklog(options: BacklogOptions): Promise<boolean> {
  for (const stream of options.log.streams.layout.streams) if (!(await countStream(options, stream))) return false;
  return true;
}

/** Resolves with true once every message of a stream has been counted, with false when it was aborted. */
async function countStream(options: BacklogOptions, stream: LogStream): Promise<boolean> {
  const { newest, partitions, signal, onProblem } = options;
  const own = stream.partitionsOf(partitions);
  const last = Math.max(0, ...own.map((partition) => stream.seqThrough(newest.get(partition) ?? 0)));
  let checkpoints: number[] | null = null;
  let next = 0;
  while (!signal.aborted) {
    try {
      // A closed stream is deleted once all of it has landed.
      if (!stream.isOpen && (await streamState(options.log.jsm, stream.name)) === null) return true;
      checkpoints ??= await checkpointsOf(options);
      next ||= Math.min(...own.map((partition) => stream.seqThrough(checkpoints?.[partition] ?? 0))) + 1;
      for await (const seq of countedFrom(options, { stream, from: next, last, own, checkpoints })) next = seq + 1;
      if (next > last) return true;
    } catch (cause) {
      onProblem('the ingest log could not be read for events that have not landed; retrying', cause);
    }
    await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
  return false;
}

/** Returns the position up to which everything has landed, by partition. */
async function checkpointsOf({ log, partitions }: BacklogOptions): Promise<number[]> {
  const kv = await log.bucket('partitions');
  return Promise.all(
    Array.from({ length: partitions }, async (_, partition) => {
      const entry = await kv.get(`partition.${partition}`);
      return entry?.operation === 'PUT' ? checkpointRecord.parse(entry.json()).checkpoint : 0;
    }),
  );
}

/** A count of a stream. */
interface Count {
  stream: LogStream;
  /** First sequence to count, and sequence of the newest message to count. */
  from: number;
  last: number;
  /** Partitions of the stream. */
  own: readonly number[];
  checkpoints: readonly number[];
}

/**
 * Counts message by message. Yields the sequence up to which all messages have been counted; the
 * newest one at the end of the log.
 */
async function* countedFrom(
  options: BacklogOptions,
  { stream, from, last, own, checkpoints }: Count,
): AsyncGenerator<number> {
  const { log, signal } = options;
  if (from > last) return;
  const subjects = new Map<string, number | null>([[stream.mixed, null]]);
  for (const partition of own) subjects.set(ingestSubject(partition), partition);
  const consumer = await log.js.consumers.get(stream.name, {
    filter_subjects: [...subjects.keys()],
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: Math.max(1, from),
  });
  if ((await consumer.info()).num_pending === 0) {
    yield last;
    return;
  }
  const messages = await consumer.consume({ max_messages: PREFETCH_MESSAGES });
  const stop = (): void => {
    messages.stop();
  };
  signal.addEventListener('abort', stop);
  const silence = setTimeout(stop, SILENT_MS);
  try {
    for await (const { seq, subject, data, headers, info } of messages) {
      silence.refresh();
      if (seq > last) {
        yield last;
        return;
      }
      countMessage(options, checkpoints, {
        position: stream.position(seq),
        data,
        partition: subjects.get(subject) ?? null,
        fingerprint: headers?.get(FINGERPRINT_HEADER),
      });
      yield info.pending === 0 ? last : seq;
      if (info.pending === 0 || seq === last) return;
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener('abort', stop);
    stop();
    await consumer.delete().catch(() => false);
  }
}

interface Message {
  /** Position in the log. */
  position: number;
  data: Uint8Array;
  /** Null: the message holds events of several partitions. */
  partition: number | null;
  fingerprint: string | undefined;
}

function countMessage(
  { partitions, accountsOf, take }: BacklogOptions,
  checkpoints: readonly number[],
  message: Message,
): void {
  const { position, data, partition, fingerprint } = message;
  const byAccount = new Map<string, EnteringEvent[]>();
  for (const event of eventsOf(data, fingerprint)) {
    const accounts = accountsOf(event);
    const whose = partition ?? partitionOf(event.org_id, event.trace_id, partitions);
    if (position <= (checkpoints[whose] ?? 0)) continue;
    for (const account of accounts) {
      const events = byAccount.get(account) ?? [];
      byAccount.set(account, events);
      events.push({ event, partition: whose });
    }
  }
  for (const [account, events] of byAccount) take(account, events, position);
}

/** Returns no events for a message that cannot be decoded: the pipeline dead-letters it. */
function eventsOf(data: Uint8Array, fingerprint: string | undefined) {
  try {
    return ingestBatchCodec.decode(data, fingerprint).events;
  } catch {
    return [];
  }
}
