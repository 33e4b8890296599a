// Enqueues mails durably; the pipeline sends them (pipeline/delivery/mail.ts). Guarantees: an
// accepted mail survives restarts and is sent or dead-lettered, and the same mail_id within two
// minutes is one mail. A mail that is too large is refused, and so is every mail while JetStream
// cannot store it.
import { type Mail, mailCodec } from '../../schemas/codec.ts';
import { publishRecord } from '../platform/nats/publish_record.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { MAIL_SUBJECT } from '../../schemas/streams.ts';

const SUBJECT_CHARS_MAX = 200;
const TEXT_CHARS_MAX = 50_000;
const STORE_MS_MAX = 2000;
/** Maximum attempts to store a mail; they share one message id, so at most one mail is stored. */
const STORE_TRIES = 2;

/** Line breaks, other characters that would end a header, and characters that are not visible. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/**
 * Enqueues a mail. Resolves once JetStream has stored it.
 * @throws Error when the mail is too large or cannot be stored
 */
export async function queueMail(log: Log, mail: Mail): Promise<void> {
  if (mail.text.length > TEXT_CHARS_MAX) throw new Error(`a mail must have at most ${TEXT_CHARS_MAX} characters`);
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

/**
 * Returns a text on one line without invisible characters, for headers and for names within a mail.
 */
export function oneLine(text: string): string {
  return text.replace(UNSEEN, ' ').trim();
}
