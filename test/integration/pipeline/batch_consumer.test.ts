// The batch consumer against a real nats-server: which messages it handles once, retries and
// dead-letters, and what it does when the server, the durable consumer or a worker dies.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { AUDIT_STREAM, AUDIT_SUBJECT, DEAD_LETTERS_STREAM } from '../../../schemas/streams.ts';
import { createDeadLetterStore } from '../../../pipeline/queues/dead_letters.ts';
import { BatchConsumer, type BatchConsumerOptions, PermanentFailure } from '../../../pipeline/queues/batch_consumer.ts';
import type { Delivery } from '../../../pipeline/queues/queue_consumer.ts';
import { type Codec, deadLetterCodec, FINGERPRINT_HEADER } from '../../../schemas/codec.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

/** Codec for the queue's messages: numbers as text. */
const numbers: Codec<number> = {
  fingerprint: 'numbers',
  encode: (value) => Buffer.from(String(value)),
  decode: (bytes) => {
    const text = Buffer.from(bytes).toString();
    if (!/^\d+$/.test(text)) throw new Error('is no number');
    return Number(text);
  },
};

let nats: TestNats;
let log: Log;
const running: BatchConsumer<number>[] = [];

beforeAll(async () => {
  nats = await startTestNats();
  log = await connect();
});
afterAll(async () => {
  await log.nc.close();
  await nats.remove();
});
beforeEach(async () => {
  await Promise.all(running.splice(0).map((queue) => queue.stop()));
  await log.jsm.streams.purge(AUDIT_STREAM);
  await log.jsm.streams.purge(DEAD_LETTERS_STREAM);
  await log.jsm.consumers.delete(AUDIT_STREAM, 'test').catch(() => undefined);
});

async function connect(): Promise<Log> {
  const nc = await connectNats({ url: nats.url, name: 'queue-test', waitMs: 5000 });
  return openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 * 1024 });
}

function start(
  handle: BatchConsumerOptions<number>['handle'],
  over: Partial<BatchConsumerOptions<number>> = {},
): BatchConsumer<number> {
  const queue = new BatchConsumer({
    log,
    logger: createLogger('queue-test', 'silent'),
    queue: 'test',
    stream: AUDIT_STREAM,
    codec: numbers,
    handle,
    deadLetter: createDeadLetterStore(log, Date.now),
    observe: () => undefined,
    messagesMax: 100,
    bytesMax: 64 * 1024 * 1024,
    batchMax: 10,
    gatherMs: 0,
    handlersMax: 1,
    ackPendingMax: 1000,
    retry: { firstMs: 20, maxMs: 100 },
    now: Date.now,
    ...over,
  });
  running.push(queue);
  queue.start();
  return queue;
}

const put = async (count: number, from = 0): Promise<void> => {
  for (let n = from; n < from + count; n++) await log.js.publish(AUDIT_SUBJECT, numbers.encode(n), { timeout: 2000 });
};
const left = async (): Promise<number> => (await log.jsm.streams.info(AUDIT_STREAM)).state.messages;
const emptied = () => eventually(async () => (await left()) === 0, { withinMs: 20_000, what: 'an empty queue' });
const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);
const valuesOf = (batch: readonly Delivery<number>[]): number[] => batch.map(({ value }) => value);

describe('a work queue', () => {
  it('a work queue gives every message to exactly one worker, in bounded batches, and drops it when it is done', async () => {
    const done: number[][] = [[], []];
    const sizes: number[] = [];
    for (const own of done)
      start((batch) => {
        sizes.push(batch.length);
        own.push(...valuesOf(batch));
        return Promise.resolve();
      });
    await put(500);
    await emptied();
    expect(sorted(done.flat())).toEqual(range(500));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(10);
  });

  it('a work queue buffers no more than its bound, whatever waits', async () => {
    const gate = Promise.withResolvers<undefined>();
    // Messages of the largest size that the stream accepts: 8 of them fit into the limit.
    for (const n of range(60)) await log.js.publish(AUDIT_SUBJECT, String(n).padStart(64 * 1024, '0'));
    start(() => gate.promise, { bytesMax: 8 * 64 * 1024 });
    const info = () => log.jsm.consumers.info(AUDIT_STREAM, 'test');
    await eventually(async () => (await info()).num_ack_pending === 8);
    expect((await info()).num_pending).toBe(52);
    gate.resolve(undefined);
    await emptied();
  });

  it.each([
    ['a multiple of its duration', { times: 1e9, maxMs: 3000 }],
    ['as long as the batch asks', { times: 0, maxMs: 3000, minMs: () => Infinity }],
  ])(
    'a work queue waits after a batch, %s, so that what arrives meanwhile is one batch, but not after a full one',
    async (_name, rest) => {
      const batches: number[][] = [];
      const handled = Promise.withResolvers<undefined>();
      start(
        async (batch) => {
          await log.nc.flush();
          batches.push(valuesOf(batch));
          handled.resolve(undefined);
        },
        { batchMax: 4, gatherMs: 0, rest },
      );
      await put(1);
      await handled.promise;
      await put(3, 1);
      await emptied();
      expect(batches.map(sorted)).toEqual([[0], [1, 2, 3]]);
      batches.length = 0;
      // A pause of three seconds per batch would exceed the wait below.
      await put(40, 4);
      await emptied();
      expect(batches.map(({ length }) => length)).toEqual(Array.from({ length: 10 }, () => 4));
    },
  );

  it('a work queue repeats what failed, with the number of the attempt, and nothing else', async () => {
    const tries = new Map<number, number[]>();
    start(
      (batch) => {
        for (const { value, attempt } of batch) tries.set(value, [...(tries.get(value) ?? []), attempt]);
        return batch.some(({ value, attempt }) => value === 3 && attempt < 4)
          ? Promise.reject(new Error('not now'))
          : Promise.resolve();
      },
      { batchMax: 1 },
    );
    await put(6);
    await emptied();
    expect(tries.get(3)).toEqual([0, 1, 2, 3, 4]);
    expect([0, 1, 2, 4, 5].map((n) => tries.get(n))).toEqual([[0], [0], [0], [0], [0]]);
  });

  it('a work queue dead-letters unreadable and impossible messages, and handles all others', async () => {
    const done: number[] = [];
    await put(7);
    await log.js.publish(AUDIT_SUBJECT, 'rubbish');
    await put(7, 7);
    start(
      (batch) => {
        if (batch.some(({ value }) => value === 4)) return Promise.reject(new PermanentFailure('four is refused'));
        done.push(...valuesOf(batch));
        return Promise.resolve();
      },
      { batchMax: 50, gatherMs: 50 },
    );
    await emptied();
    expect(sorted(done)).toEqual(range(14).filter((n) => n !== 4));
    const letters = [];
    for (const seq of [1, 2]) {
      const message = await log.jsm.streams.getMessage(DEAD_LETTERS_STREAM, {
        seq: (await log.jsm.streams.info(DEAD_LETTERS_STREAM)).state.first_seq + seq - 1,
      });
      if (message !== null) letters.push(deadLetterCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)));
    }
    expect(letters.map(({ stage, reason, body }) => [stage, reason, body.toString()])).toEqual([
      ['test', 'unreadable_message', 'rubbish'],
      ['test', 'refused', '4'],
    ]);
  });

  it('a work queue gives up messages that are too old, and keeps trying others', async () => {
    await put(1);
    let tries = 0;
    let clock = Date.now();
    start(
      () => {
        tries += 1;
        if (tries === 3) clock += 61_000;
        return Promise.reject(new Error('never'));
      },
      { giveUpAfterMs: 60_000, now: () => clock },
    );
    await emptied();
    expect(tries).toBe(3);
    expect((await log.jsm.streams.info(DEAD_LETTERS_STREAM)).state.messages).toBe(1);
  });

  it('a work queue handles each message once although its handler takes longer than the server waits', async () => {
    const begun: number[] = [];
    let extended = 0;
    const extensions = log.nc.subscribe('$JS.ACK.>', {
      callback: (_, message) => {
        if (message.string() === '+WPI') extended += 1;
      },
    });
    await put(3);
    start(
      async (batch) => {
        begun.push(...valuesOf(batch));
        // The worker extends the server's acknowledgement wait four times per wait for each
        // message, so eight extensions cover twice the wait.
        await eventually(() => extended >= 8 * batch.length, { what: 'extensions of the wait' });
      },
      { ackWaitMs: 2000, batchMax: 3, gatherMs: 50 },
    );
    await emptied();
    extensions.unsubscribe();
    expect(sorted(begun)).toEqual([0, 1, 2]);
  });

  it('a work queue loses nothing when a worker dies with messages in flight', async () => {
    await put(20);
    const doomed = await connect();
    const taken: number[] = [];
    const gate = Promise.withResolvers<undefined>();
    const dead = start(
      (batch) => {
        taken.push(...valuesOf(batch));
        return gate.promise;
      },
      { log: doomed, ackWaitMs: 1000 },
    );
    await eventually(() => taken.length > 0);
    await doomed.nc.close();
    const done: number[] = [];
    start(
      (batch) => {
        done.push(...valuesOf(batch));
        return Promise.resolve();
      },
      { ackWaitMs: 1000 },
    );
    await emptied();
    expect(sorted(done)).toEqual(range(20));
    gate.resolve(undefined);
    running.splice(running.indexOf(dead), 1);
    await dead.stop();
  });

  it('a work queue continues by itself after kill -9 of the server, and after its consumer was deleted', async () => {
    const done = new Set<number>();
    start((batch) => {
      for (const value of valuesOf(batch)) done.add(value);
      return Promise.resolve();
    });
    await put(50);
    await eventually(() => done.size === 50);
    await nats.kill();
    await nats.start();
    await eventually(async () => {
      await put(50, 50);
      return true;
    });
    await eventually(() => done.size === 100, { withinMs: 20_000, what: 'what came after the restart' });
    await log.jsm.consumers.delete(AUDIT_STREAM, 'test');
    await put(50, 100);
    await eventually(() => done.size === 150, { withinMs: 20_000, what: 'what came after the deletion' });
    await emptied();
  });

  it('a work queue finishes its messages in flight at shutdown and returns the rest at once', async () => {
    const gate = Promise.withResolvers<undefined>();
    const first: number[] = [];
    await put(30);
    const stopped = start(
      async (batch) => {
        first.push(...valuesOf(batch));
        await gate.promise;
      },
      { batchMax: 5, gatherMs: 50 },
    );
    await eventually(() => first.length === 5);
    const ended = stopped.stop();
    gate.resolve(undefined);
    await ended;
    expect(first).toHaveLength(5);
    const second: number[] = [];
    start((batch) => {
      second.push(...valuesOf(batch));
      return Promise.resolve();
    });
    await emptied();
    expect(sorted([...first, ...second])).toEqual(range(30));
  });
});
