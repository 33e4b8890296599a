// The CPU time of an event in the process of a worker, without the log and the store: from a message
// of the log to the bytes of its rows.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { NODE_FLAGS } from '../../ops/launch/process/node_main.ts';
import { mebibytes, percentile, type Section, single, thousands } from './report.ts';
import type { WorkerNumbers } from './worker_child.ts';

async function numbersOf(): Promise<WorkerNumbers> {
  const child = fork(new URL('./worker_child.ts', import.meta.url), [], { execArgv: [...NODE_FLAGS] });
  const ended = once(child, 'exit').then(() => null);
  const said = await Promise.race([once(child, 'message').then(([numbers]) => numbers as WorkerNumbers), ended]);
  if (said === null) throw new Error('the measuring process ended without its numbers');
  await ended;
  return said;
}

export async function benchWorker(progress: (line: string) => void): Promise<Section> {
  progress('worker: events from the log to the bytes of their rows');
  const numbers = await numbersOf();
  const cpu = percentile(numbers.cpu_us, 0.5);
  const note = `the fastest batch ${Math.min(...numbers.cpu_us).toFixed(1)} µs; ${thousands(numbers.events)} events`;
  return {
    title: 'A worker without log and store (model calls with searchable text)',
    rows: [
      { what: 'CPU time an event', value: `p50 ${cpu.toFixed(1)} µs`, note, measures: single(cpu, 'us') },
      {
        what: 'memory of the process',
        value: mebibytes(numbers.rss_bytes),
        measures: single(numbers.rss_bytes, 'bytes'),
      },
      {
        what: 'bytes of an event on its way to the store',
        value: `${thousands(Math.round(numbers.wire_bytes))} B`,
        measures: single(numbers.wire_bytes, 'bytes'),
      },
    ],
    data: numbers,
  };
}
