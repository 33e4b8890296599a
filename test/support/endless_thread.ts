// A worker thread for tests of deadlines. A job names the number of parts that it answers, and then
// ends, loops forever or throws.
import { parentPort } from 'node:worker_threads';

export interface EndlessJob {
  parts: number;
  then: 'done' | 'endless' | 'dies';
}

parentPort?.on('message', ({ job }: { job: EndlessJob }) => {
  for (let part = 0; part < job.parts; part++) parentPort?.postMessage({ part });
  if (job.then === 'dies') throw new Error('as the test asks');
  while (job.then === 'endless');
  parentPort?.postMessage({ done: true });
});
parentPort?.postMessage({ ready: true });
