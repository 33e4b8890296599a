// A worker that cannot become ready yet reports that it is starting, so that its supervisor does
// not consider it hung.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';

let nats: TestNats;
let worker: TestWorker;
beforeAll(async () => {
  nats = await startTestNats();
  // No process listens on this port.
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
