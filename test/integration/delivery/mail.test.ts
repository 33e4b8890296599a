// Mail from the API to a real SMTP server: the token of an invite works, no mail is lost while the
// server is down or the mailer is killed, an organization's name cannot forge headers, and logs
// hold no token.
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { SMTPServer } from 'smtp-server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { queueMail } from '../../../ops/exchange/mail_queue.ts';
import { DEAD_LETTERS_STREAM, MAIL_STREAM } from '../../../schemas/streams.ts';
import { createMailer, type MailerOptions } from '../../../pipeline/delivery/mail.ts';
import { deadLetterCodec, FINGERPRINT_HEADER, mailCodec } from '../../../schemas/codec.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { makeOrg } from '../a_tenant.ts';
import { asUser, call, startTestApi, type TestApi, tokenOf } from '../api/an_api.ts';

const RETRY = { firstMs: 20, maxMs: 50 };

interface Received {
  from: string;
  to: string[];
  /** Headers and text as received, with \n for line breaks. */
  raw: string;
}

/**
 * An SMTP server that keeps the mail it accepts; `refuse` returns the rejection of an address, or
 * null.
 */
class TestSmtp {
  readonly received: Received[] = [];
  refuse: (address: string) => { code: number; text: string } | null = () => null;
  /** Makes the server accept a mail and then disconnect without acknowledging it. */
  vanish = false;
  #server: SMTPServer | null = null;
  #port = 0;

  get url(): string {
    return `smtp://user:smtp-password@127.0.0.1:${this.#port}`;
  }

  /** Starts the server; after a stop it uses the same port again. */
  async start(): Promise<void> {
    const server = new SMTPServer({
      disabledCommands: ['STARTTLS'],
      allowInsecureAuth: true,
      logger: false,
      onAuth: ({ password }, _session, done) => {
        if (password === 'smtp-password') done(null, { user: 'user' });
        else done(new Error('who is that'));
      },
      onRcptTo: ({ address }, _session, done) => {
        const refusal = this.refuse(address);
        done(refusal === null ? null : Object.assign(new Error(refusal.text), { responseCode: refusal.code }));
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          const { mailFrom, rcptTo } = session.envelope;
          this.received.push({
            from: mailFrom === false ? '' : mailFrom.address,
            to: rcptTo.map(({ address }) => address),
            raw: Buffer.concat(chunks).toString('utf8').replaceAll('\r\n', '\n'),
          });
          if (this.vanish) for (const connection of server.connections) connection.close();
          else done();
        });
      },
    });
    server.on('error', () => undefined);
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.server.address() as AddressInfo).port;
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    await new Promise<void>((resolve) => {
      server.close(resolve);
    });
  }
}

let nats: TestNats;
let api: TestApi;
let smtp: TestSmtp;
let logged = '';
let running: { stop: () => Promise<void> }[] = [];
const logger = pino(
  { level: 'debug' },
  new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      logged += chunk.toString();
      done();
    },
  }),
);

beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url });
});

afterAll(async () => {
  await api.close();
  await nats.remove();
});

beforeEach(async () => {
  logged = '';
  smtp = new TestSmtp();
  await smtp.start();
});

afterEach(async () => {
  for (const mailer of running) await mailer.stop();
  running = [];
  await smtp.stop();
  await api.log.jsm.streams.purge(MAIL_STREAM);
  await api.log.jsm.streams.purge(DEAD_LETTERS_STREAM);
});

function startMailer(over: Partial<MailerOptions> = {}): { stop: () => Promise<void> } {
  const mailer = createMailer({
    log: api.log,
    logger,
    smtpUrl: smtp.url,
    from: 'Millrace <no-reply@mail.example>',
    now: Date.now,
    observe: () => undefined,
    retry: RETRY,
    ...over,
  });
  mailer.start();
  running.push(mailer);
  return mailer;
}

const waiting = async () => (await api.log.jsm.streams.info(MAIL_STREAM)).state.messages;

let serial = 0;
/**
 * Creates an organization owned by ann, who invites the address. Returns its id and the token of
 * the invite.
 */
async function inviteTo(email: string, name = 'Acme'): Promise<{ org: string; token: string }> {
  const org = await makeOrg(api, { name });
  const headers = asUser(await tokenOf({ sub: 'ann' }), org);
  const invited = await call(api, 'POST', `/orgs/${org}/members`, { headers, body: { email, role: 'admin' } });
  expect(invited.status).toBe(201);
  return { org, token: String((invited.json?.['data'] as Record<string, unknown>)['token']) };
}

const aMail = (over: Partial<Parameters<typeof queueMail>[1]> = {}) => ({
  mail_id: `test-${++serial}`,
  org_id: 'org_a',
  to: 'bob@example.com',
  subject: 'Subject',
  text: 'Text\n',
  secret: '',
  created_at: Date.now(),
  ...over,
});

/** Returns the text of a mail without the line wraps added in transit. */
const unwrapped = ({ raw }: Received) => raw.replace(/=\n/g, '').replaceAll('=3D', '=');

describe('with a mail server', () => {
  test('an invite arrives by mail with a token that works', async () => {
    startMailer();
    const { org } = await inviteTo('bob@example.com');
    await eventually(() => smtp.received.length === 1, { what: 'the mail' });
    const [mail] = smtp.received;
    if (mail === undefined) throw new Error('no mail');
    expect([mail.from, mail.to]).toEqual(['no-reply@mail.example', ['bob@example.com']]);
    const text = unwrapped(mail);
    expect(text).toContain('Subject: You are invited to Acme');
    expect(text).toContain('as admin');
    expect(text).toContain(`POST /orgs/${org}/members/accept`);
    const token = /"token": "([^"]+)"/.exec(text)?.[1];
    const accepted = await call(api, 'POST', `/orgs/${org}/members/accept`, {
      headers: asUser(await tokenOf({ sub: 'bob', email: 'bob@example.com' }), org),
      body: { token },
    });
    expect(accepted.status).toBe(200);
    const transfer = await call(api, 'POST', `/orgs/${org}/transfer`, {
      headers: asUser(await tokenOf({ sub: 'ann' }), org),
      body: { new_owner_user_id: 'bob' },
    });
    expect(transfer.status).toBe(201);
    await eventually(() => smtp.received.length === 2, { what: 'the mail of the transfer' });
    const offer = unwrapped(smtp.received[1] ?? mail);
    const taken = await call(api, 'POST', `/orgs/${org}/transfer/accept`, {
      headers: asUser(await tokenOf({ sub: 'bob', email: 'bob@example.com' }), org),
      body: { token: /"token": "([^"]+)"/.exec(offer)?.[1] },
    });
    expect(taken.status).toBe(200);
    await eventually(async () => (await waiting()) === 0, { what: 'an empty queue' });
    expect(logged).not.toContain(String(token));
  });

  test('a mail queued while the server is away arrives once when it is back, under one Message-ID', async () => {
    await smtp.stop();
    startMailer();
    await inviteTo('bob@example.com');
    await inviteTo('cat@example.com');
    await eventually(() => logged.split('delivering failed').length > 4, { what: 'some tries' });
    expect([smtp.received.length, await waiting()]).toEqual([0, 2]);
    await smtp.start();
    await eventually(async () => smtp.received.length === 2 && (await waiting()) === 0, { what: 'both mails' });
    expect(smtp.received.flatMap(({ to }) => to).sort()).toEqual(['bob@example.com', 'cat@example.com']);
    expect(new Set(smtp.received.map(({ raw }) => /^Message-ID: (.*)$/m.exec(raw)?.[1])).size).toBe(2);
    expect(logged).not.toContain('smtp-password');
  });

  test('a mailer that stops in the middle leaves the mail to the next one, with the same Message-ID', async () => {
    const mail = aMail({ to: 'slow@example.com' });
    smtp.refuse = () => ({ code: 451, text: 'later' });
    const first = startMailer();
    await queueMail(api.log, mail);
    await eventually(() => logged.includes('delivering failed'));
    await first.stop();
    smtp.refuse = () => null;
    startMailer();
    await eventually(async () => smtp.received.length === 1 && (await waiting()) === 0);
    expect(smtp.received[0]?.raw).toContain(`Message-ID: <${mail.mail_id}@mail.example>`);
  });

  test('a mail whose acceptance was not received is sent again, recognisable by its Message-ID', async () => {
    smtp.vanish = true;
    startMailer();
    const mail = aMail();
    await queueMail(api.log, mail);
    await eventually(() => smtp.received.length > 0 && logged.includes('delivering failed'), {
      what: 'a mail that nobody confirmed',
    });
    smtp.vanish = false;
    await eventually(async () => (await waiting()) === 0);
    expect(smtp.received.length).toBeGreaterThan(1);
    expect(new Set(smtp.received.map(({ raw }) => /^Message-ID: (.*)$/m.exec(raw)?.[1]))).toEqual(
      new Set([`<${mail.mail_id}@mail.example>`]),
    );
  });

  test('one deferred address delays no other', async () => {
    smtp.refuse = (address) => (address === 'slow@example.com' ? { code: 451, text: 'later' } : null);
    startMailer();
    for (let n = 0; n < 10; n++) await queueMail(api.log, aMail({ to: 'slow@example.com' }));
    await queueMail(api.log, aMail({ to: 'bob@example.com' }));
    await eventually(() => smtp.received.some(({ to }) => to.includes('bob@example.com')));
    await eventually(async () => (await waiting()) === 10, { what: 'only those that are put off in the queue' });
  });

  test.each([
    ['an address that is refused for good', { code: 550, text: 'no such user' }, 0],
    ['an address that is put off for more than a day', { code: 451, text: 'later' }, 25 * 3_600_000],
  ])('%s ends as a dead letter without its secret', async (_what, refusal, aheadMs) => {
    smtp.refuse = () => refusal;
    await queueMail(api.log, aMail({ text: 'Your token: s3cr3t-t0k3n\n', secret: 's3cr3t-t0k3n' }));
    startMailer({ now: () => Date.now() + aheadMs });
    await eventually(async () => (await api.log.jsm.streams.info(DEAD_LETTERS_STREAM)).state.messages === 1, {
      what: 'a dead letter',
    });
    await eventually(async () => (await waiting()) === 0);
    const { state } = await api.log.jsm.streams.info(DEAD_LETTERS_STREAM);
    const letter = await api.log.jsm.streams.getMessage(DEAD_LETTERS_STREAM, { seq: state.first_seq });
    const { stage, body } = deadLetterCodec.decode(
      letter?.data ?? new Uint8Array(),
      letter?.header.get(FINGERPRINT_HEADER),
    );
    expect([stage, mailCodec.decode(body, mailCodec.fingerprint)]).toEqual([
      'mail',
      expect.objectContaining({ to: 'bob@example.com', text: 'Your token: ***\n', secret: '' }),
    ]);
    expect(logged).not.toContain('s3cr3t-t0k3n');
    expect(smtp.received).toEqual([]);
  });

  test("an organization's name cannot forge headers or lines of the text", async () => {
    startMailer();
    await inviteTo('bob@example.com', 'Acme\r\nBcc: eve@example.com\r\n\r\nVisit evil.example\u2028now');
    await eventually(() => smtp.received.length === 1);
    const [mail] = smtp.received;
    expect(mail?.to).toEqual(['bob@example.com']);
    expect(mail?.raw.split('\n\n')[0]).not.toMatch(/^Bcc:/m);
    expect(mail === undefined ? '' : unwrapped(mail)).not.toMatch(/^(Bcc: |Visit evil)/m);
  });

  test('a mail that is queued twice is sent once', async () => {
    const mail = aMail();
    await Promise.all([queueMail(api.log, mail), queueMail(api.log, mail)]);
    startMailer();
    await queueMail(api.log, aMail({ to: 'last@example.com' }));
    await eventually(async () => (await waiting()) === 0);
    expect(smtp.received.map(({ to }) => to[0]).sort()).toEqual(['bob@example.com', 'last@example.com']);
  });
});

test('without a mail server the mail is logged, but its token is not', async () => {
  startMailer({ smtpUrl: undefined });
  const { org, token } = await inviteTo('bob@example.com');
  await eventually(() => logged.includes('bob@example.com'), { what: 'the mail in the log' });
  expect(logged).toContain(`/orgs/${org}/members/accept`);
  expect(logged).not.toContain(token);
  await eventually(async () => (await waiting()) === 0);
});
