// Counts the use of events in the ingest log that have not landed, for an API process that has just
// started: no other process may know of it, and the sums of the store lack it. Takes the log from
// the oldest checkpoint on; passes on each event of the organizations in question with its
// position. Decodes one message at a time and prefetches PREFETCH_MESSAGES; a read that fails
// resumes where it stopped.
import { setTimeout as sleep } from 'node:timers/promises';
import { DeliverPolicy } from '@nats-io/jetstream';
import { z } from 'zod';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { INGEST_STREAM, ingestSubject, MIXED_SUBJECT } from '../../../schemas/streams.ts';
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
  log: Pick<Log, 'js' | 'bucket'>;
  /** Number of partitions of the ingest log. */
  partitions: number;
  /** JetStream sequence of the newest message to count. */
  newest: number;
  /** Returns the accounts that are to count an event. */
  accountsOf: (event: { org_id: string; key_id?: string }) => readonly string[];
  /** Takes the events of one account in one message of the log. */
  take: (account: string, events: readonly EnteringEvent[], seq: number) => void;
  signal: AbortSignal;
  onProblem: ReportProblem;
}

/** Resolves with true once every message has been counted, with false when it was aborted. */
export async function countBacklog(options: BacklogOptions): Promise<boolean> {
  const { newest, signal, onProblem } = options;
  let checkpoints: number[] | null = null;
  let next = 0;
  while (!signal.aborted) {
    try {
      checkpoints ??= await checkpointsOf(options);
      next ||= Math.min(...checkpoints) + 1;
      for await (const seq of countedFrom(options, next, checkpoints)) next = seq + 1;
      if (next > newest) return true;
    } catch (cause) {
      onProblem('the ingest log could not be read for events that have not landed; retrying', cause);
    }
    await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
  return false;
}

/** Returns the JetStream sequence up to which everything has landed, by partition. */
async function checkpointsOf({ log, partitions }: BacklogOptions): Promise<number[]> {
  const kv = await log.bucket('partitions');
  return Promise.all(
    Array.from({ length: partitions }, async (_, partition) => {
      const entry = await kv.get(`partition.${partition}`);
      return entry?.operation === 'PUT' ? checkpointRecord.parse(entry.json()).checkpoint : 0;
    }),
  );
}

/**
 * Counts message by message. Yields the sequence up to which all messages have been counted; the
 * newest one at the end of the log.
 */
async function* countedFrom(
  options: BacklogOptions,
  from: number,
  checkpoints: readonly number[],
): AsyncGenerator<number> {
  const { log, partitions, newest, signal } = options;
  if (from > newest) return;
  const subjects = new Map<string, number | null>([[MIXED_SUBJECT, null]]);
  for (let partition = 0; partition < partitions; partition++) subjects.set(ingestSubject(partition), partition);
  const consumer = await log.js.consumers.get(INGEST_STREAM, {
    filter_subjects: [...subjects.keys()],
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: Math.max(1, from),
  });
  if ((await consumer.info()).num_pending === 0) {
    yield newest;
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
      if (seq > newest) {
        yield newest;
        return;
      }
      countMessage(options, checkpoints, {
        seq,
        data,
        partition: subjects.get(subject) ?? null,
        fingerprint: headers?.get(FINGERPRINT_HEADER),
      });
      yield info.pending === 0 ? newest : seq;
      if (info.pending === 0 || seq === newest) return;
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener('abort', stop);
    stop();
    await consumer.delete().catch(() => false);
  }
}

interface Message {
  seq: number;
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
  const { seq, data, partition, fingerprint } = message;
  const byAccount = new Map<string, EnteringEvent[]>();
  for (const event of eventsOf(data, fingerprint)) {
    const accounts = accountsOf(event);
    const whose = partition ?? partitionOf(event.org_id, event.trace_id, partitions);
    if (seq <= (checkpoints[whose] ?? 0)) continue;
    for (const account of accounts) {
      const events = byAccount.get(account) ?? [];
      byAccount.set(account, events);
      events.push({ event, partition: whose });
    }
  }
  for (const [account, events] of byAccount) take(account, events, seq);
}

/** Returns no events for a message that cannot be decoded: the pipeline dead-letters it. */
function eventsOf(data: Uint8Array, fingerprint: string | undefined) {
  try {
    return ingestBatchCodec.decode(data, fingerprint).events;
  } catch {
    return [];
  }
}
