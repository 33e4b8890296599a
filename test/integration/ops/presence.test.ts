// The presence of workers: a NATS server tells at once that the connection of a worker is gone. A process that is paused,
// or a server that does not answer, makes no worker absent.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isAbsent, showPresence } from '../../../ops/exchange/heartbeats.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

const HEARTBEATS = path.resolve(import.meta.dirname, '../../../ops/exchange/heartbeats.ts');
const CONNECT = path.resolve(import.meta.dirname, '../../../ops/platform/nats/connect.ts');

let nats: TestNats;
beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(() => nats.remove());

const connected = () => connectNats({ url: nats.url, name: 'test', waitMs: 10_000 });

it('a worker is present while it is connected, and absent after', async () => {
  const [asking, worker] = [await connected(), await connected()];
  expect(await isAbsent(asking, 'w1')).toBe(true);
  const end = showPresence(worker, 'w1');
  await worker.flush();
  expect(await isAbsent(asking, 'w1')).toBe(false);
  end();
  await worker.flush();
  expect(await isAbsent(asking, 'w1')).toBe(true);
  await worker.close();
  await asking.close();
});

it('a paused process is present, and a killed one is absent', async () => {
  const asking = await connected();
  const code = `const { connectNats } = await import(${JSON.stringify(CONNECT)});
    const { showPresence } = await import(${JSON.stringify(HEARTBEATS)});
    showPresence(await connectNats({ url: ${JSON.stringify(nats.url)}, name: 'worker', waitMs: 10000 }), 'w2');`;
  const worker = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'ignore' });
  const ended = once(worker, 'exit');
  await eventually(async () => !(await isAbsent(asking, 'w2')), { what: 'the connection of the process' });
  worker.kill('SIGSTOP');
  expect(await isAbsent(asking, 'w2')).toBe(false);
  worker.kill('SIGKILL');
  await ended;
  await eventually(() => isAbsent(asking, 'w2'), { what: 'the end of the connection' });
  await asking.close();
});

it('nobody is absent while no server answers', async () => {
  const asking = await connected();
  await asking.close();
  expect(await isAbsent(asking, 'w3')).toBe(false);
});
