// A worker that cannot be ready yet says that it is starting, so that nobody takes it for hung.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';

let nats: TestNats;
let worker: TestWorker;
beforeAll(async () => {
  nats = await startTestNats();
  // Nobody listens on this port.
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: 'http://app:x@127.0.0.1:1/millrace' });
});
afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await nats.remove();
});

it('a worker that starts repeats its log line while the store is away', async () => {
  const words: unknown[] = [];
  worker.child.on('message', (word) => words.push(word));
  await eventually(() => words.length >= 2, { what: 'two words', withinMs: 60_000 });
  expect(words).toEqual(words.map(() => ({ starting: true })));
});
