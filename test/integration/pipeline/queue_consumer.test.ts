// The queue consumer against a real nats-server: the parts of its contract that do not involve
// batches.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { type Delivery, QueueConsumer, type QueueConsumerOptions } from '../../../pipeline/queues/queue_consumer.ts';
import type { DeadMessage } from '../../../pipeline/queues/dead_letters.ts';
import type { Codec } from '../../../schemas/codec.ts';
import { AUDIT_STREAM, AUDIT_SUBJECT } from '../../../schemas/streams.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

const texts: Codec<string> = {
  fingerprint: 'texts',
  encode: (value) => Buffer.from(value),
  decode: (bytes) => {
    const text = Buffer.from(bytes).toString();
    if (text === 'rubbish') throw new Error('is rubbish');
    return text;
  },
};

let nats: TestNats;
let log: Log;
const running: QueueConsumer<string>[] = [];

beforeAll(async () => {
  nats = await startTestNats();
  const nc = await connectNats({ url: nats.url, name: 'queue-consumer-test', waitMs: 5000 });
  log = await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 * 1024 });
});
afterAll(async () => {
  await log.nc.close();
  await nats.remove();
});
beforeEach(async () => {
  await Promise.all(running.splice(0).map((consumer) => consumer.stop()));
  await log.jsm.streams.purge(AUDIT_STREAM);
  await log.jsm.consumers.delete(AUDIT_STREAM, 'test').catch(() => undefined);
});

function start(
  deliver: (delivery: Delivery<string>, consumer: QueueConsumer<string>) => Promise<void> | undefined,
  over: Partial<QueueConsumerOptions<string>> = {},
): QueueConsumer<string> {
  const consumer: QueueConsumer<string> = new QueueConsumer({
    log,
    logger: createLogger('queue-consumer-test', 'silent'),
    queue: 'test',
    stream: AUDIT_STREAM,
    codec: texts,
    deliver: (delivery) => deliver(delivery, consumer),
    deadLetter: () => Promise.resolve(),
    messagesMax: 100,
    bytesMax: 64 * 1024 * 1024,
    ackPendingMax: -1,
    ackWaitMs: 60_000,
    retry: { firstMs: 20, maxMs: 100 },
    confirmAcks: false,
    drainMs: 200,
    now: Date.now,
    ...over,
  });
  running.push(consumer);
  consumer.start();
  return consumer;
}

const put = async (...values: string[]): Promise<void> => {
  for (const value of values) await log.js.publish(AUDIT_SUBJECT, value, { timeout: 2000 });
};
const left = async (): Promise<number> => (await log.jsm.streams.info(AUDIT_STREAM)).state.messages;
const emptied = () => eventually(async () => (await left()) === 0, { withinMs: 20_000, what: 'an empty queue' });
const pending = async (): Promise<number> =>
  (await log.jsm.consumers.info(AUDIT_STREAM, 'test').catch(() => ({ num_ack_pending: 0 }))).num_ack_pending;

describe('a queue consumer', () => {
  it('keeps a message in the queue until the delivery is acknowledged', async () => {
    const deliveries: Delivery<string>[] = [];
    const consumer = start((delivery) => {
      deliveries.push(delivery);
      return undefined;
    });
    await put('a', 'b');
    await eventually(() => deliveries.length === 2);
    expect(await left()).toBe(2);
    expect(deliveries.map(({ value, attempt, bytes }) => [value, attempt, bytes])).toEqual([
      ['a', 0, 1],
      ['b', 0, 1],
    ]);
    for (const delivery of deliveries) await consumer.acknowledge(delivery);
    await emptied();
    // Settling the same delivery a second time has no effect.
    for (const delivery of deliveries) consumer.retry(delivery, 0);
    expect(deliveries).toHaveLength(2);
  });

  it('redelivers a retried message after the delay, with the next attempt number', async () => {
    const attempts: [number, number][] = [];
    start((delivery, consumer) => {
      attempts.push([delivery.attempt, performance.now()]);
      if (delivery.attempt === 1) return consumer.acknowledge(delivery);
      consumer.retry(delivery, 600);
      return undefined;
    });
    await put('a');
    await emptied();
    const [first, second] = attempts;
    expect(attempts.map(([attempt]) => attempt)).toEqual([0, 1]);
    expect((second?.[1] ?? 0) - (first?.[1] ?? 0)).toBeGreaterThanOrEqual(590);
  });

  it('retries a message whose deliver function rejects', async () => {
    const attempts: number[] = [];
    start(async (delivery, consumer) => {
      attempts.push(delivery.attempt);
      if (delivery.attempt < 2) throw new Error('not now');
      await consumer.acknowledge(delivery);
    });
    await put('a');
    await emptied();
    expect(attempts).toEqual([0, 1, 2]);
  });

  it('stops requesting messages when the bytes that it holds leave no room for the largest', async () => {
    const held: Delivery<string>[] = [];
    const largest = 64 * 1024;
    const bytesMax = 4 * largest;
    const consumer = start(
      (delivery) => {
        held.push(delivery);
        return undefined;
      },
      { bytesMax, fetchMax: 2 },
    );
    await put(...Array.from({ length: 8 }, () => 'x'.repeat(largest)));
    await eventually(async () => (await pending()) === 4);
    await eventually(() => held.length === 4);
    for (const delivery of held.splice(0)) await consumer.acknowledge(delivery);
    await eventually(() => held.length === 4);
    expect(await left()).toBe(4);
  });

  it('acknowledges messages without decoding them while none is wanted', async () => {
    const values: string[] = [];
    let wanted = false;
    start(
      (delivery, consumer) => {
        values.push(delivery.value);
        return consumer.acknowledge(delivery);
      },
      { isWanted: () => wanted },
    );
    await put('a', 'rubbish');
    await emptied();
    wanted = true;
    await put('b');
    await emptied();
    expect(values).toEqual(['b']);
  });

  it('retries a message that cannot be decoded until its dead letter is stored', async () => {
    const letters: DeadMessage[] = [];
    const observed: [string, number][] = [];
    let refusals = 2;
    start(() => undefined, {
      deadLetter: (message) => {
        if (refusals-- > 0) return Promise.reject(new Error('no room'));
        letters.push(message);
        return Promise.resolve();
      },
      observe: (result, count) => {
        observed.push([result, count]);
      },
    });
    await put('rubbish');
    await emptied();
    expect(letters.map(({ queue, reason, detail }) => [queue, reason, detail])).toEqual([
      ['test', 'unreadable_message', 'is rubbish'],
    ]);
    expect(observed).toEqual([['dead', 1]]);
  });

  it('aborts cutOff on shutdown, and returns the messages that are given back then to the queue', async () => {
    const delivered = Promise.withResolvers<undefined>();
    const consumer = start((delivery, own) => {
      delivered.resolve(undefined);
      own.cutOff.addEventListener('abort', () => {
        own.retry(delivery, 60_000);
      });
      return undefined;
    });
    await put('a');
    await delivered.promise;
    const began = performance.now();
    await consumer.stop();
    expect(consumer.stopping.aborted).toBe(true);
    expect(performance.now() - began).toBeLessThan(1000);
    const values: string[] = [];
    start((delivery, own) => {
      values.push(delivery.value);
      return own.acknowledge(delivery);
    });
    await emptied();
    expect(values).toEqual(['a']);
  });
});
