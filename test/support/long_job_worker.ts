// Runs long jobs of the kind `endless` in its own process, for tests that kill and pause a worker
// in the middle of one. A job runs until its signal aborts it. Arguments: NATS URL, worker id,
// hurry.
import { die } from '../../ops/platform/leave.ts';
import { JobRecords } from '../../ops/exchange/job_records.ts';
import { createLogger } from '../../ops/platform/logger.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { openLog } from '../../ops/platform/nats/open_log.ts';
import { LongJobRunner } from '../../pipeline/jobs/long_jobs.ts';

const [url = '', workerId = '', hurry = '1'] = process.argv.slice(2);
process.on('disconnect', die);
const nc = await connectNats({ url, name: workerId, waitMs: 5000 });
const log = await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 * 1024 });
new LongJobRunner({
  records: await JobRecords.open(log, () => undefined),
  handlers: {
    endless: ({ job_id, progress, signal }) => {
      progress(1, 3);
      process.send?.(`began ${job_id}`);
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          process.send?.('stopped');
          reject(signal.reason as Error);
        });
      });
    },
  },
  workerId,
  log: createLogger('test', 'silent'),
  now: () => Date.now(),
  observe: () => undefined,
  hurry: Number(hurry),
}).start();
process.send?.('ready');
