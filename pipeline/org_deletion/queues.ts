// Messages of an organization in JetStream: deliveries, mails, judging tasks, scores, audit
// entries, dead letters, platform events. Messages of one organization are deleted and overwritten.
// One message of the platform events or the ingest log contains events of many organizations, so
// these streams are purged, for all organizations, up to where every consumer has read them.
// Bounds: queues are read one message at a time, up to the newest one at the start.
import { setTimeout as sleep } from 'node:timers/promises';
import { purgeCachedAnswers } from '../../ops/exchange/answer_cache.ts';
import { nextMessage } from '../../ops/platform/nats/next_message.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import {
  AUDIT_STREAM,
  EVENTS_STREAM,
  LANGFUSE_STREAM,
  langfuseSubjects,
  JUDGING_STREAM,
  MAIL_STREAM,
  PENDING_SCORES_STREAM,
  pendingScoresSubject,
  SCORES_STREAM,
  WEBHOOKS_STREAM,
} from '../../schemas/streams.ts';
import {
  auditEntryCodec,
  type Codec,
  type DeadLetter,
  judgingTaskCodec,
  mailCodec,
  userScoreCodec,
} from '../../schemas/codec.ts';
import { tokenOf } from '../../schemas/records/webhook.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';

const LOOK_MS = 250;
/**
 * Time that consumers of platform events get to read the stream; then the whole job is retried
 * later.
 */
const READ_MS_MAX = 600_000;

/** Queue whose messages each belong to one organization. */
interface Queue {
  stream: string;
  orgOf: (data: Uint8Array, fingerprint: string | undefined) => string;
}

function queueOf<T extends { org_id: string }>(stream: string, codec: Codec<T>): Queue {
  return { stream, orgOf: (data, fingerprint) => codec.decode(data, fingerprint).org_id };
}

const QUEUES: readonly Queue[] = [
  queueOf(AUDIT_STREAM, auditEntryCodec),
  queueOf(MAIL_STREAM, mailCodec),
  queueOf(SCORES_STREAM, userScoreCodec),
  queueOf(JUDGING_STREAM, judgingTaskCodec),
];

/**
 * Deletes an organization's messages from the work queues.
 * @returns the number of deleted messages
 */
export async function eraseQueued(log: Log, org_id: string, signal: AbortSignal): Promise<number> {
  const own = { filter: `webhooks.${tokenOf(org_id)}.>` };
  let erased = (await log.jsm.streams.purge(WEBHOOKS_STREAM, own)).purged;
  const parts = { filter: langfuseSubjects(tokenOf(org_id)) };
  erased += (await log.jsm.streams.purge(LANGFUSE_STREAM, parts)).purged;
  const pending = { filter: pendingScoresSubject(tokenOf(org_id)) };
  erased += (await log.jsm.streams.purge(PENDING_SCORES_STREAM, pending)).purged;
  erased += await purgeCachedAnswers(log, org_id);
  for (const queue of QUEUES) erased += await eraseFrom(log, queue, org_id, signal);
  return erased;
}

async function eraseFrom(log: Log, { stream, orgOf }: Queue, org_id: string, signal: AbortSignal): Promise<number> {
  const { state } = await log.jsm.streams.info(stream);
  let erased = 0;
  for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq;) {
    signal.throwIfAborted();
    const message = await nextMessage(log, stream, seq);
    if (message === null || message.seq > state.last_seq) break;
    seq = message.seq + 1;
    let owner: string | null = null;
    try {
      owner = orgOf(message.data, message.fingerprint);
    } catch {
      // The consumer of the queue dead-letters a message that cannot be decoded.
    }
    if (owner !== org_id) continue;
    // The consumer may acknowledge the message at this very moment.
    if (await log.jsm.streams.deleteMessage(stream, message.seq, true).catch(() => false)) erased += 1;
  }
  return erased;
}

/**
 * Returns true when a dead letter belongs to an organization: an event of it, or a message of a
 * queue that names it.
 */
export function isDeadLetterOf({ org_id, body }: Pick<DeadLetter, 'org_id' | 'body'>, wanted: string): boolean {
  if (org_id !== '') return org_id === wanted;
  // Messages are Avro, which writes a string as its length and its bytes, so another organization's
  // longer id does not match.
  const id = Buffer.from(wanted, 'utf8');
  return Buffer.from(body).includes(Buffer.concat([zigzag(id.length), id]));
}

/** Returns a length as Avro encodes it. */
function zigzag(length: number): Buffer {
  const bytes: number[] = [];
  let left = length * 2;
  for (; left > 0x7f; left >>>= 7) bytes.push((left & 0x7f) | 0x80);
  return Buffer.from([...bytes, left]);
}

/**
 * Purges the platform events up to the newest one, once every consumer has read them.
 * @throws StoreUnavailable when a consumer has not read them within ten minutes
 */
export async function purgeEvents(log: Log, signal: AbortSignal): Promise<void> {
  const { state } = await log.jsm.streams.info(EVENTS_STREAM);
  if (state.messages === 0) return;
  const through = state.last_seq;
  const deadline = performance.now() + READ_MS_MAX;
  for (;;) {
    const behind: string[] = [];
    for await (const { name, config, ack_floor, num_pending, num_ack_pending } of log.jsm.consumers.list(
      EVENTS_STREAM,
    )) {
      // A consumer without a durable name has no position in the stream.
      if (config.durable_name === undefined) continue;
      if (ack_floor.stream_seq < through && num_pending + num_ack_pending > 0) behind.push(name);
    }
    if (behind.length === 0) break;
    if (performance.now() > deadline)
      throw new StoreUnavailable(`platform events are not yet read by ${behind.join(', ')}`);
    await sleep(LOOK_MS, undefined, { signal });
  }
  await log.jsm.streams.purge(EVENTS_STREAM, { seq: through + 1 });
}
