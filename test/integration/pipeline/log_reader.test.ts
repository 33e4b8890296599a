// A log reader whose consumer falls silent without an error, as happened with a cluster of three
// servers.
import type { JetStreamClient } from '@nats-io/jetstream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { ingestSubject } from '../../../schemas/streams.ts';
import { LogReader } from '../../../pipeline/worker/log_reader.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

let nats: TestNats;
let log: Log;
beforeAll(async () => {
  nats = await startTestNats();
  log = await openLog(await connectNats({ url: nats.url, name: 'reader', waitMs: 10_000 }), {
    replicas: 1,
    logBytesMax: 64 * 1024 ** 2,
  });
});
afterAll(async () => {
  await log.nc.close();
  await nats.remove();
});

/**
 * Returns a client whose first `times` consumers exist but deliver nothing. It counts how often a
 * consumer is opened and how often its info is requested.
 */
function silentAtFirst(
  js: JetStreamClient,
  times: number,
): { js: JetStreamClient; opened: () => number; asked: () => number } {
  let opened = 0;
  let asked = 0;
  const get: JetStreamClient['consumers']['get'] = async (...args) => {
    const consumer = await js.consumers.get(...args);
    opened += 1;
    const isSilent = opened <= times;
    const never = Promise.withResolvers<never>();
    const silent = {
      stop: () => undefined,
      status: () => asSilent,
      [Symbol.asyncIterator]: () => ({ next: () => never.promise }),
    };
    const asSilent = { [Symbol.asyncIterator]: () => ({ next: () => never.promise }) };
    return new Proxy(consumer, {
      get: (target, name) => {
        if (name === 'consume' && isSilent) return () => Promise.resolve(silent);
        if (name === 'info') asked += 1;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  };
  const consumers = new Proxy(js.consumers, {
    get: (target, name) => (name === 'get' ? get : (Reflect.get(target, name, target) as unknown)),
  });
  return {
    js: new Proxy(js, {
      get: (target, name) => (name === 'consumers' ? consumers : (Reflect.get(target, name, target) as unknown)),
    }),
    opened: () => opened,
    asked: () => asked,
  };
}

it('a log reader that is silent although there is something to read is opened again, and reads each message once', async () => {
  const { js, opened, asked } = silentAtFirst(log.js, 2);
  const reader = new LogReader({ js, logger: createLogger('test', 'silent'), stillMs: 100 });
  for (const text of ['a', 'b', 'c']) await log.js.publish(ingestSubject(0), text);
  const [stream] = log.streams.layout.open;
  if (stream === undefined) throw new Error('the log has no stream');
  reader.read(stream, [0], 1);
  await eventually(() => reader.buffered === 3);
  expect(opened()).toBe(3);
  expect(
    [reader.take(), reader.take(), reader.take(), reader.take()].map(
      (message) => message && Buffer.from(message.data).toString(),
    ),
  ).toEqual(['a', 'b', 'c', undefined]);
  // The reader does not reopen a consumer that has nothing to read.
  const [quiet, looks] = [opened(), asked()];
  await log.js.publish(ingestSubject(1), 'of another');
  await eventually(() => asked() >= looks + 3);
  expect(opened()).toBe(quiet);
  await log.js.publish(ingestSubject(0), 'd');
  await eventually(() => reader.buffered === 1);
  reader.stop();
});
