// Owns partitions in its own process, without reading them, for tests that kill, pause or cut off a
// worker. Reports to the parent what it acquires, releases and loses. At the message `checkpoint` it
// writes a checkpoint of partition 0 and reports whether the write was accepted; at the message `stop`
// it releases its partitions and ends.
// Arguments: NATS URL, worker id, number of partitions, lease in milliseconds.
import { createLogger } from '../../ops/platform/logger.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { openLog } from '../../ops/platform/nats/open_log.ts';
import { Ownership } from '../../pipeline/worker/ownership.ts';

const [url = '', workerId = '', partitions = '1', leaseMs = '2000'] = process.argv.slice(2);
const nc = await connectNats({ url, name: workerId, waitMs: 10_000 });
const log = await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 * 1024 });
const ownership = new Ownership({
  nc,
  kv: await log.bucket('partitions'),
  workerId,
  partitions: Number(partitions),
  metricsUrl: '',
  streamOf: () => 0,
  leaseMs: Number(leaseMs),
  logger: createLogger('owning-worker', 'silent'),
});
process.on('message', (message) => {
  if (message === 'stop') {
    void ownership
      .stop()
      .then(() => nc.drain())
      .then(() => process.exit());
    return;
  }
  void ownership
    .checkpoint({ partition: 0, epoch: ownership.epochOf(0) ?? 0 }, 7, 7)
    .then((accepted) => process.send?.(`checkpoint ${accepted ? 'accepted' : 'rejected'}`));
});
process.on('disconnect', () => {
  process.exit();
});
await ownership.start({
  acquire: (records) => {
    for (const { partition, epoch } of records) process.send?.(`acquired ${partition} at ${epoch}`);
    return Promise.resolve(records.map(({ partition }) => partition));
  },
  release: (released) => {
    for (const partition of released) process.send?.(`released ${partition}`);
    return Promise.resolve(released);
  },
  lose: (partition) => process.send?.(`lost ${partition}`),
});
