// Sends mails from the queue MAIL: by SMTP where a server is set, else into the log. Guarantees: a mail leaves the queue only
// after the server has taken it; one that the server does not take for a day, or refuses for good, is kept in the dead
// letters. At least once: a mail that comes twice has the same Message-ID. Neither log nor dead letter shows a mail's secret.
import { createTransport, type Transporter } from 'nodemailer';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { MAIL_BYTES_MAX, MAIL_STREAM } from '../../schemas/streams.ts';
import { type Mail, mailCodec } from '../../schemas/codec.ts';
import { BatchConsumer, type BatchConsumerOptions, PermanentFailure } from '../queues/batch_consumer.ts';
import { createDeadLetterStore, type DeadMessage } from '../queues/dead_letters.ts';

const QUEUE = 'mail';
/** Mails on their way at a time, of one worker. */
const SENDING_MAX = 4;
const MESSAGES_MAX = 100;
const HELD_BYTES_MAX = MESSAGES_MAX * MAIL_BYTES_MAX;
const RETRY = { firstMs: 1000, maxMs: 60_000 };
/** As long as what mails are about can be accepted. */
const GIVE_UP_MS = 24 * 3_600_000;
const CONNECT_MS_MAX = 10_000;
/** Silence of the server in the middle of a mail. */
const SILENCE_MS_MAX = 20_000;
const SEND_MS_MAX = 60_000;
const HIDDEN = '***';

export interface MailerOptions {
  log: Log;
  logger: Logger;
  /** smtp:// or smtps://; unset: mails are written to the log. */
  smtpUrl: string | undefined;
  from: string;
  /** Milliseconds since the epoch. */
  now: () => number;
  observe: BatchConsumerOptions<Mail>['observe'];
  /** Waits between the tries of one mail. */
  retry?: BatchConsumerOptions<Mail>['retry'];
}

/** The mailer of one worker; any number of them share the queue. */
export function createMailer({
  log,
  logger,
  smtpUrl,
  from,
  now,
  observe,
  retry = RETRY,
}: MailerOptions): BatchConsumer<Mail> {
  const transport = smtpUrl === undefined ? null : openTransport(smtpUrl, from);
  if (transport === null)
    logger.info('SERVICE_SMTP_URL is not set: mails are written to the log, without their tokens');
  const deadLetter = createDeadLetterStore(log, now);
  return new BatchConsumer({
    log,
    logger,
    queue: QUEUE,
    stream: MAIL_STREAM,
    codec: mailCodec,
    handle: async (batch) => {
      for (const { value } of batch)
        await (transport === null ? writeDown(value, logger) : send(value, transport, from));
    },
    deadLetter: (message) => deadLetter(withoutSecret(message)),
    observe,
    messagesMax: MESSAGES_MAX,
    bytesMax: HELD_BYTES_MAX,
    batchMax: 1,
    gatherMs: 0,
    handlersMax: SENDING_MAX,
    // An address that a server puts off must not hold up the mails to others.
    ackPendingMax: -1,
    retry,
    giveUpAfterMs: GIVE_UP_MS,
    now,
  });
}

function openTransport(url: string, from: string): Transporter {
  return createTransport(
    {
      url,
      connectionTimeout: CONNECT_MS_MAX,
      greetingTimeout: CONNECT_MS_MAX,
      dnsTimeout: CONNECT_MS_MAX,
      socketTimeout: SILENCE_MS_MAX,
      disableFileAccess: true,
      disableUrlAccess: true,
    },
    { from },
  );
}

async function send(mail: Mail, transport: Transporter, from: string): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error(`the mail server took longer than ${String(SEND_MS_MAX)} ms`));
  }, SEND_MS_MAX);
  const sent = transport.sendMail({
    // As an object, so that nothing in it is read as a second address.
    to: { name: '', address: mail.to },
    subject: mail.subject,
    text: mail.text,
    messageId: messageId(mail, from),
    date: new Date(mail.created_at),
    headers: { 'Auto-Submitted': 'auto-generated' },
  });
  try {
    await Promise.race([sent, late.promise]);
  } catch (error) {
    throw isFinal(error) ? new PermanentFailure('the mail server refuses the mail', { cause: error }) : error;
  } finally {
    clearTimeout(timer);
  }
}

/** The same for every try of a mail. */
function messageId({ mail_id }: Mail, from: string): string {
  return `<${mail_id}@${/@([^\s<>@]+?)>?$/.exec(from)?.[1] ?? 'localhost'}>`;
}

/** Whether the server said, of this very mail or its receiver, that no later try will do. What it says of us can be put right. */
function isFinal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { command, responseCode } = error as Error & { command?: unknown; responseCode?: unknown };
  return typeof responseCode === 'number' && responseCode >= 500 && (command === 'RCPT TO' || command === 'DATA');
}

function writeDown(mail: Mail, logger: Logger): Promise<void> {
  const { mail_id, to, subject, text } = hidden(mail);
  logger.info({ mail: { mail_id, to, subject, text } }, 'a mail; SERVICE_SMTP_URL is not set, so it is not sent');
  return Promise.resolve();
}

function hidden(mail: Mail): Mail {
  return mail.secret === '' ? mail : { ...mail, text: mail.text.replaceAll(mail.secret, HIDDEN), secret: '' };
}

/** A dead letter is kept for long and shown to operators. What cannot be read is kept as it is: it is no mail of this release. */
function withoutSecret(message: DeadMessage): DeadMessage {
  if (message.reason === 'unknown_schema' || message.reason === 'unreadable_message') return message;
  return { ...message, data: mailCodec.encode(hidden(mailCodec.decode(message.data, mailCodec.fingerprint))) };
}
