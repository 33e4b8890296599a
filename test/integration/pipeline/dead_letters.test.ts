// Dead letters when DEAD_LETTERS is nearly full: landing continues, the worker truncates the
// letters, and the operator's command restores what they lack.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { headers } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { isFull } from '../../../ops/platform/nats/refused.ts';
import { DEAD_LETTERS_STREAM, EVENTS_STREAM, MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';
import { Publisher } from '../../../pipeline/worker/publish.ts';
import { BODY_BYTES_HEADER, deadLetterCodec, FINGERPRINT_HEADER, type IngestEvent } from '../../../schemas/codec.ts';
import { logged, startTestPipeline, type TestPipeline } from '../../support/pipeline.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });

const COMMAND = fileURLToPath(new URL('../../../ops/tools/dead_letters.ts', import.meta.url));
const PARTITION = 1;
const MIB = 1024 * 1024;

let pipeline: TestPipeline;
let database: TestPipeline['database'];
let nats: TestPipeline['nats'];
let log: TestPipeline['log'];

beforeAll(async () => {
  pipeline = await startTestPipeline();
  ({ database, nats, log } = pipeline);
});
afterAll(() => pipeline.close());

const command = async (...args: string[]): Promise<string> => {
  const { stdout } = await promisify(execFile)(process.execPath, [COMMAND, ...args], {
    env: { ...process.env, SERVICE_NATS_URL: nats.url },
    maxBuffer: 64 * MIB,
  });
  return stdout;
};
const bad = (n: number, bytes: number, org_id: string): IngestEvent =>
  logged(
    'chatcompletion',
    { not: 'a chat completion', n, filler: 'x'.repeat(bytes), trace_id: `trace-${n}` },
    { org_id },
  );
const good = (n: number): IngestEvent =>
  logged('custom', { name: 'step', n, duration_ms: 1, outcome: 'success', trace_id: `good-${n}` });
const publish = (events: IngestEvent[]): Promise<void> => log.publish(events, () => PARTITION);
const letters = async (): Promise<number> => (await log.log.jsm.streams.info(DEAD_LETTERS_STREAM)).state.messages;
const landed = async (): Promise<number> => Number((await database.run('SELECT sum(events) FROM usage_events')).trim());
const bound = (max_bytes: number) => log.log.jsm.streams.update(DEAD_LETTERS_STREAM, { max_bytes });

/**
 * Returns the stored letters. `whole` is the size of the full body in bytes when the letter holds
 * only a part of it.
 */
async function stored() {
  const { state } = await log.log.jsm.streams.info(DEAD_LETTERS_STREAM);
  const found = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
    const message = await log.log.jsm.streams.getMessage(DEAD_LETTERS_STREAM, { seq });
    if (message === null) continue;
    const letter = deadLetterCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER));
    found.push({
      seq,
      letter,
      whole: message.header.has(BODY_BYTES_HEADER) ? Number(message.header.get(BODY_BYTES_HEADER)) : null,
    });
  }
  return found;
}

/** Fills DEAD_LETTERS until it accepts no more messages. */
async function fill(): Promise<void> {
  for (const bytes of [4096, 256, 16]) {
    try {
      for (;;) {
        const head = headers();
        head.set(FINGERPRINT_HEADER, 'none');
        await log.log.js.publish('dead.test', Buffer.alloc(bytes), { headers: head });
      }
    } catch (error) {
      if (!isFull(error)) throw error;
    }
  }
}

it('dead letters shrink with the available room, landing continues without any, and their events come from the log', async () => {
  const { max_bytes: room } = (await log.log.jsm.streams.info(DEAD_LETTERS_STREAM)).config;
  await bound(MIB);
  await publish(Array.from({ length: 12 }, (_, n) => bad(n, 250_000, 'org_flood')));
  await eventually(async () => (await letters()) === 12, { what: 'twelve letters' });
  const kept = await stored();
  expect(
    kept.every(({ letter, whole }) => letter.org_id === 'org_flood' && (whole ?? letter.body.length) > 250_000),
  ).toBe(true);
  expect(kept.filter(({ whole }) => whole !== null).length).toBeGreaterThan(6);

  await fill();
  const before = await letters();
  await publish([good(0), bad(100, 10, 'org_b'), good(1)]);
  await publish([good(2)]);
  await eventually(async () => (await landed()) === 3, { what: 'the neighbours' });
  expect(await letters()).toBe(before);
  const position = (await log.log.jsm.streams.info('INGEST')).state.last_seq;
  const kv = await log.log.bucket('partitions');
  await eventually(
    async () => ((await kv.get(`partition.${PARTITION}`))?.json<{ checkpoint: number }>().checkpoint ?? 0) >= position,
    {
      what: 'the checkpoint behind it',
    },
  );

  await log.log.jsm.streams.purge(DEAD_LETTERS_STREAM, { filter: 'dead.test' });
  // The stream has room again. The operator's command runs without the stream's limits in its
  // environment and must not change them. A truncated letter is replayed in full and dead-lettered
  // in full.
  expect(await command('list')).toContain('org_flood');
  expect((await log.log.jsm.streams.info(DEAD_LETTERS_STREAM)).config.max_bytes).toBe(MIB);
  await bound(room);
  const cut = kept.find(({ whole }) => whole !== null);
  expect(await command('show', String(cut?.seq))).toContain(`"body_bytes": ${String(cut?.whole)}`);
  // Resends the lost letter by the position that the worker's log line names: the second event of
  // the message before the newest.
  const { base } = (await (await log.log.bucket('service')).get('log'))?.json<{ base: number }>() ?? { base: 0 };
  expect(await command('resend', String(base + position - 1), '1')).toContain('of org_b');
  await eventually(async () => (await stored()).some(({ letter }) => letter.org_id === 'org_b'), {
    what: 'the letter that was lost',
  });
  await command('replay', String(cut?.seq));
  await eventually(
    async () =>
      (await stored()).some(
        ({ letter, whole, seq }) =>
          seq > (cut?.seq ?? 0) && whole === null && letter.event_hex === cut?.letter.event_hex,
      ),
    {
      what: 'the whole letter',
    },
  );

  const [one] = (await stored()).filter(({ letter }) => letter.org_id === 'org_b');
  expect(await command('delete', '--org', 'org_flood')).toBe('deleted 12 of org_flood\n');
  expect(await letters()).toBe(1);
  expect(await command('delete', String(one?.seq))).toBe(`deleted ${String(one?.seq)}\n`);
  expect(await command('list')).toBe('no dead letters\n');
  await expect(command('delete')).rejects.toThrow('usage');
});

it('events with more scores than one message holds are published in several, and the largest body of the log fits a dead letter', async () => {
  const publisher = new Publisher(log.log, createLogger('test', 'silent'), {
    now: () => Date.now(),
    onPublished: () => undefined,
    onLetterLost: () => undefined,
  });
  const judge_scores = Object.fromEntries(
    Array.from({ length: 200 }, (_, n) => [`${'\u{1F600}'.repeat(99)}${n}`, 0.5]),
  );
  const before = (await log.log.jsm.streams.info(EVENTS_STREAM)).state.messages;
  await publisher.publishEvents(
    Array.from({ length: 150 }, (_, n) => ({
      event: 'trace.completed' as const,
      org_id: 'org_scores',
      trace_id: `scored-${n}`,
      payload: { event: 'trace.completed', trace_id: `scored-${n}`, outcome: 'success', judge_scores },
    })),
  );
  expect((await log.log.jsm.streams.info(EVENTS_STREAM)).state.messages).toBeGreaterThan(before + 10);
  expect((await toldEvents(log.log)).filter(({ org_id }) => org_id === 'org_scores')).toHaveLength(150);

  const event = {
    ...bad(1, MESSAGE_BYTES_MAX - 8192, 'org_big'),
    partition: PARTITION,
    log_seq: 1_000_000,
    log_index: 0,
  };
  await publisher.deadLetter([
    {
      dead: { step: 'decode', reason: 'decode_failed', detail: '漢'.repeat(5000), position: event },
      event,
      raw: null,
    },
  ]);
  const [letter] = (await stored()).filter(({ letter: one }) => one.org_id === 'org_big');
  expect(letter?.whole).toBe(event.body.length);
});
