// Runs an eval worker in its own process, for tests that kill it.
import { die } from '../../ops/platform/leave.ts';
import { type EvalWorkerOptions, startEvalWorker } from './evals.ts';

process.on('disconnect', die);
await startEvalWorker(JSON.parse(process.argv[2] ?? '{}') as EvalWorkerOptions);
process.send?.('ready');
