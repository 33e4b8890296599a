// Module of the thread that runs what orgs have written and what may take long: own patterns of PII policies, and rules of judges. It
// answers in parts, so that what was finished before a deadline is not lost.
import { parentPort } from 'node:worker_threads';
import { runJob, type PatternJob } from './jobs.ts';

parentPort?.on('message', ({ job }: { job: PatternJob }) => {
  for (const part of runJob(job)) parentPort?.postMessage({ part });
  parentPort?.postMessage({ done: true });
});
parentPort?.postMessage({ ready: true });
