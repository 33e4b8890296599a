// Sends the mails of the queue MAIL by SMTP, or writes them to the log where no server is
// configured. Guarantees: a mail leaves the queue only after the server has accepted it; a mail
// that the server rejects permanently, or does not accept for a day, becomes a dead letter.
// Delivery is at least once: a repeated mail has the same Message-ID. Neither the log nor a dead
// letter holds the secret of a mail. At most SENDING_MAX mails are sent at a time.
import { createTransport, type Transporter } from 'nodemailer';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { MAIL_BYTES_MAX, MAIL_STREAM } from '../../schemas/streams.ts';
import { type Mail, mailCodec } from '../../schemas/codec.ts';
import { BatchConsumer, type BatchConsumerOptions, PermanentFailure } from '../queues/batch_consumer.ts';
import { createDeadLetterStore, type DeadMessage } from '../queues/dead_letters.ts';

const QUEUE = 'mail';
/** Maximum number of mails that one worker sends at a time. */
const SENDING_MAX = 4;
const MESSAGES_MAX = 100;
const HELD_BYTES_MAX = MESSAGES_MAX * MAIL_BYTES_MAX;
const RETRY = { firstMs: 1000, maxMs: 60_000 };
/**
 * Age after which a failing mail is dead-lettered: the invitation or link in it has expired by
 * then.
 */
const GIVE_UP_MS = 24 * 3_600_000;
const CONNECT_MS_MAX = 10_000;
/** Longest silence of the server within one mail. */
const SILENCE_MS_MAX = 20_000;
const SEND_MS_MAX = 60_000;
const HIDDEN = '***';

export interface MailerOptions {
  log: Log;
  logger: Logger;
  /** URL of the server, smtp:// or smtps://; mails are written to the log unless it is set. */
  smtpUrl: string | undefined;
  from: string;
  /** Milliseconds since the epoch. */
  now: () => number;
  observe: BatchConsumerOptions<Mail>['observe'];
  /** Waits between the attempts of one mail. */
  retry?: BatchConsumerOptions<Mail>['retry'];
}

/** Returns the mailer of one worker. Any number of workers share the queue. */
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
    // Mails to an address that the server defers must not delay mails to others.
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
    late.reject(new Error(`the mail server took longer than ${SEND_MS_MAX} ms`));
  }, SEND_MS_MAX);
  const sent = transport.sendMail({
    // The address is passed as an object, so that no part of it is parsed as a second address.
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
    throw isFinal(error) ? new PermanentFailure('the mail server rejects the mail', { cause: error }) : error;
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the Message-ID, which is the same for every attempt of a mail. */
function messageId({ mail_id }: Mail, from: string): string {
  return `<${mail_id}@${/@([^\s<>@]+?)>?$/.exec(from)?.[1] ?? 'localhost'}>`;
}

/**
 * Returns true when the server has permanently rejected this mail or its recipient. Errors about
 * the sender or the session can be corrected, so they are retried.
 */
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

/**
 * Returns the message without the secret of its mail, as dead letters are kept for long and shown
 * to operators. A message that cannot be decoded stays as it is.
 */
function withoutSecret(message: DeadMessage): DeadMessage {
  if (message.reason === 'unknown_schema' || message.reason === 'unreadable_message') return message;
  return { ...message, data: mailCodec.encode(hidden(mailCodec.decode(message.data, mailCodec.fingerprint))) };
}
