// Worker thread that runs what organizations have written and what may take long: own patterns of
// PII policies, and judges' rules. It answers in parts, so that finished work survives a deadline.
import { parentPort } from 'node:worker_threads';
import { runJob, type PatternJob } from './jobs.ts';

parentPort?.on('message', ({ job }: { job: PatternJob }) => {
  for (const part of runJob(job)) parentPort?.postMessage({ part });
  parentPort?.postMessage({ done: true });
});
parentPort?.postMessage({ ready: true });
