// A worker of evals as a process of its own, for tests that kill it.
import { type EvalWorkerOptions, startEvalWorker } from './evals.ts';

process.on('disconnect', () => process.exit(0));
await startEvalWorker(JSON.parse(process.argv[2] ?? '{}') as EvalWorkerOptions);
process.send?.('ready');
