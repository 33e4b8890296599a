// Reads single messages of a stream by their sequence and subject, without a consumer: a work queue
// has one consumer of its own. One request reads one message.
import { z } from 'zod';
import { FINGERPRINT_HEADER } from '../../../schemas/codec.ts';
import type { Log } from './open_log.ts';

const GET_MS_MAX = 5000;
const NOT_FOUND = 404;
const FINGERPRINT_LINE = new RegExp(`^${FINGERPRINT_HEADER}:[ ]*(\\S+)`, 'im');

const answer = z.union([
  z.object({ message: z.object({ seq: z.int(), data: z.base64().default(''), hdrs: z.base64().default('') }) }),
  z.object({ error: z.object({ code: z.int(), description: z.string().default('') }) }),
]);

export interface StreamMessage {
  seq: number;
  data: Uint8Array;
  fingerprint: string | undefined;
}

/**
 * Returns the first message of a subject at or after a sequence, whatever is missing before it; null
 * for none. The NATS client offers exact sequences only.
 * @param subject may have wildcards; all subjects by default
 * @throws Error when the server does not answer in time
 */
export async function nextMessage(log: Log, stream: string, seq: number, subject = '>'): Promise<StreamMessage | null> {
  const question = JSON.stringify({ seq, next_by_subj: subject });
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
