// What waits of an organization in JetStream: deliveries, mails, judging tasks, scores, entries of the audit log, dead letters, platform
// events. Messages of the org are deleted and overwritten. Platform events and the ingest log hold many orgs in one message: they are
// purged up to where every reader has read them, for all orgs.
// Bounds: queues are read message by message, up to the newest one at the beginning; no more than one is held.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import {
  AUDIT_STREAM,
  EVENTS_STREAM,
  JUDGING_STREAM,
  MAIL_STREAM,
  SCORES_STREAM,
  WEBHOOKS_STREAM,
} from '../../schemas/streams.ts';
import {
  auditEntryCodec,
  type Codec,
  type DeadLetter,
  FINGERPRINT_HEADER,
  judgingTaskCodec,
  mailCodec,
  userScoreCodec,
} from '../../schemas/codec.ts';
import { tokenOf } from '../../schemas/records/webhook.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';

const LOOK_MS = 250;
const GET_MS_MAX = 5000;
/** Readers of platform events get this long to read what was there; then the whole work is tried again later. */
const READ_MS_MAX = 600_000;

/** A queue whose messages are one thing of one org each. */
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

/** Deletes what waits of an org in the work queues. @returns how many messages there were */
export async function eraseQueued(log: Log, org_id: string, signal: AbortSignal): Promise<number> {
  const own = { filter: `webhooks.${tokenOf(org_id)}.>` };
  let erased = (await log.jsm.streams.purge(WEBHOOKS_STREAM, own)).purged;
  for (const queue of QUEUES) erased += await eraseFrom(log, queue, org_id, signal);
  return erased;
}

async function eraseFrom(log: Log, { stream, orgOf }: Queue, org_id: string, signal: AbortSignal): Promise<number> {
  const { state } = await log.jsm.streams.info(stream);
  let erased = 0;
  for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq;) {
    signal.throwIfAborted();
    const message = await messageFrom(log, stream, seq);
    if (message === null || message.seq > state.last_seq) break;
    seq = message.seq + 1;
    let owner: string | null = null;
    try {
      owner = orgOf(message.data, message.fingerprint);
    } catch {
      // A message that cannot be read is on its way to the dead letters, by its reader.
    }
    if (owner !== org_id) continue;
    // Its reader may be done with it in this very moment.
    if (await log.jsm.streams.deleteMessage(stream, message.seq, true).catch(() => false)) erased += 1;
  }
  return erased;
}

const answer = z.union([
  z.object({ message: z.object({ seq: z.int(), data: z.base64().default(''), hdrs: z.base64().default('') }) }),
  z.object({ error: z.object({ code: z.int(), description: z.string().default('') }) }),
]);
const NOT_FOUND = 404;
const FINGERPRINT_LINE = new RegExp(`^${FINGERPRINT_HEADER}:[ ]*(\\S+)`, 'im');

/** The first message at or after a sequence, however many before it are gone; null for none. The client asks for exact sequences only. */
async function messageFrom(
  log: Log,
  stream: string,
  seq: number,
): Promise<{ seq: number; data: Uint8Array; fingerprint: string | undefined } | null> {
  const question = JSON.stringify({ seq, next_by_subj: '>' });
  const reply = await log.nc.request(`$JS.API.STREAM.MSG.GET.${stream}`, question, { timeout: GET_MS_MAX });
  const got = answer.parse(reply.json());
  if ('error' in got) {
    if (got.error.code === NOT_FOUND) return null;
    throw new Error(`the stream ${stream} cannot be read: ${got.error.description}`);
  }
  const { message } = got;
  const fingerprint = FINGERPRINT_LINE.exec(Buffer.from(message.hdrs, 'base64').toString('utf8'))?.[1];
  return { seq: message.seq, data: Buffer.from(message.data, 'base64'), fingerprint };
}

/** Whether a dead letter is of an org: an event of it, or a message of a queue that names it. */
export function isDeadLetterOf({ org_id, body }: Pick<DeadLetter, 'org_id' | 'body'>, wanted: string): boolean {
  if (org_id !== '') return org_id === wanted;
  // Messages are Avro, which writes a string as its length and its bytes: another org's longer id does not match.
  const id = Buffer.from(wanted, 'utf8');
  return Buffer.from(body).includes(Buffer.concat([zigzag(id.length), id]));
}

/** A length as Avro writes it. */
function zigzag(length: number): Buffer {
  const bytes: number[] = [];
  let left = length * 2;
  for (; left > 0x7f; left >>>= 7) bytes.push((left & 0x7f) | 0x80);
  return Buffer.from([...bytes, left]);
}

/**
 * Purges the platform events up to the newest one, once every reader has read them.
 * @throws StoreUnavailable when a reader has not got there in ten minutes
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
      // What is read without a name keeps no place in the stream.
      if (config.durable_name === undefined) continue;
      if (ack_floor.stream_seq < through && num_pending + num_ack_pending > 0) behind.push(name);
    }
    if (behind.length === 0) break;
    if (performance.now() > deadline)
      throw new StoreUnavailable(`platform events are not read by ${behind.join(', ')}`);
    await sleep(LOOK_MS, undefined, { signal });
  }
  await log.jsm.streams.purge(EVENTS_STREAM, { seq: through + 1 });
}
