// Mails on their way out: put into a durable queue here, sent by the pipeline (pipeline/delivery/mail.ts).
// Guarantees: a mail that was taken survives restarts and is sent, or ends as a dead letter; the same mail_id within two
// minutes is one mail. Refuses what is too large, and everything while JetStream cannot store it.
import { type Mail, mailCodec } from '../../schemas/codec.ts';
import { publishRecord } from '../platform/nats/publish_record.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { MAIL_SUBJECT } from '../../schemas/streams.ts';

const SUBJECT_CHARS_MAX = 200;
const TEXT_CHARS_MAX = 50_000;
const STORE_MS_MAX = 2000;
/** Tries of one mail; all with one message id, so that they store one. */
const STORE_TRIES = 2;

/** Line breaks and other characters that would end a header, or that no reader sees. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/**
 * Queues a mail; resolves when JetStream has stored it.
 * @throws Error when it is too large, or cannot be stored
 */
export async function queueMail(log: Log, mail: Mail): Promise<void> {
  if (mail.text.length > TEXT_CHARS_MAX) throw new Error(`a mail takes at most ${String(TEXT_CHARS_MAX)} characters`);
  const shown = { ...mail, subject: oneLine(mail.subject).slice(0, SUBJECT_CHARS_MAX) };
  for (let tries = 1; ; tries++) {
    try {
      await publishRecord(log, MAIL_SUBJECT, mailCodec, shown, { msgID: mail.mail_id, timeoutMs: STORE_MS_MAX });
      return;
    } catch (error) {
      if (tries >= STORE_TRIES) throw error;
    }
  }
}

/** A text on one line, without what cannot be seen: for headers, and for names within a mail. */
export function oneLine(text: string): string {
  return text.replace(UNSEEN, ' ').trim();
}
