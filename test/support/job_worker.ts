// Runs a job runner in its own process, for tests that kill and pause a worker in the middle of a
// job. Its only job, `endless`, runs until it is aborted. Reports its progress to the parent.
// Arguments: NATS URL, worker id, hurry.
import { createLogger } from '../../ops/platform/logger.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { openLog } from '../../ops/platform/nats/open_log.ts';
import { JobLeases } from '../../pipeline/jobs/lease.ts';
import { JobRunner } from '../../pipeline/jobs/runner.ts';

const [url = '', workerId = '', hurry = '1'] = process.argv.slice(2);
const nc = await connectNats({ url, name: workerId, waitMs: 5000 });
const log = await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 * 1024 });
const onProblem = (): void => undefined;
const leases = await JobLeases.open({ log, workerId, onProblem, hurry: Number(hurry) });
const runner = new JobRunner({
  nc,
  leases,
  jobs: [
    {
      name: 'endless',
      cron: '0 0 1 1 *',
      timeout_ms: 600_000,
      run: ({ signal }) => {
        process.send?.('began');
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            process.send?.('stopped');
            reject(signal.reason as Error);
          });
        });
      },
    },
  ],
  log: createLogger('job-worker', 'silent'),
  observe: () => undefined,
});
await runner.start();
// A call that reaches the server before the runner's subscription does has no worker.
await nc.flush();
process.send?.('ready');
