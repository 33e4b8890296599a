// A worker of evals as a process of its own, for tests that kill it.
import { die } from '../../ops/platform/leave.ts';
import { type EvalWorkerOptions, startEvalWorker } from './evals.ts';

process.on('disconnect', die);
await startEvalWorker(JSON.parse(process.argv[2] ?? '{}') as EvalWorkerOptions);
process.send?.('ready');
