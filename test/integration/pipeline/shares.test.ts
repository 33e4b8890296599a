// How many partitions a worker moves that joins, that is killed and that stops, with a real NATS server.
// Each worker is a process of its own, which reports what it acquires, releases and loses.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

const PARTITIONS = 24;
const LEASE_MS = 2000;

let nats: TestNats;
/** The workers that run, by id, and the partitions that each one owns. */
let workers: Map<string, { process: ChildProcess; owned: Set<number> }>;
/** Number of reports of each kind since the last act. */
let counts: Record<'acquired' | 'released' | 'lost', number>;

beforeEach(async () => {
  nats = await startTestNats();
  workers = new Map();
});
afterEach(async () => {
  for (const id of [...workers.keys()]) await end(id, 'kill');
  await nats.remove();
});

async function end(id: string, how: 'kill' | 'stop'): Promise<void> {
  const ending = workers.get(id)?.process;
  workers.delete(id);
  if (ending === undefined) throw new Error(`${id} does not run`);
  const exited = once(ending, 'exit');
  if (how === 'stop') ending.send('stop');
  else ending.kill('SIGKILL');
  await exited;
}

async function startOne(id: string): Promise<void> {
  const args = [nats.url, id, String(PARTITIONS), String(LEASE_MS)];
  const worker = {
    process: fork(new URL('../../support/owning_worker.ts', import.meta.url), args),
    owned: new Set<number>(),
  };
  worker.process.on('message', (report) => {
    const [what, partition] = (report as string).split(' ');
    if (what !== 'acquired' && what !== 'released' && what !== 'lost') return;
    counts[what] += 1;
    worker.owned[what === 'acquired' ? 'add' : 'delete'](Number(partition));
  });
  workers.set(id, worker);
  await once(worker.process, 'spawn');
}

/** Resolves once the workers that run own all partitions evenly. */
const even = (): Promise<unknown> =>
  eventually(() => [...workers.values()].every(({ owned }) => owned.size === PARTITIONS / workers.size), {
    what: 'an even division',
  });

/** Does something, and returns how many partitions moved until the division was even again. */
async function moves(act: () => Promise<void>): Promise<typeof counts> {
  counts = { acquired: 0, released: 0, lost: 0 };
  await act();
  await even();
  return counts;
}

it('a worker that joins, is killed or stops moves its own share of the partitions and no other', async () => {
  await moves(() => startOne('w1'));
  await moves(() => startOne('w2'));
  expect(await moves(() => startOne('w0'))).toEqual({ acquired: 8, released: 8, lost: 0 });
  expect(await moves(() => startOne('w3'))).toEqual({ acquired: 6, released: 6, lost: 0 });
  expect(await moves(() => end('w0', 'kill'))).toEqual({ acquired: 6, released: 0, lost: 0 });
  expect(await moves(() => end('w1', 'stop'))).toEqual({ acquired: 8, released: 8, lost: 0 });
});
