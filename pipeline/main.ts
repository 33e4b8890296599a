// Entry of a pipeline worker: opens its parts in the order in which they depend on each other, and drains them on a signal.
// Any number of workers run against one NATS and one ClickHouse; they share nothing else.
import { flushCompileCache } from 'node:module';
import { die, leave } from '../ops/platform/leave.ts';
import type { Logger } from '../ops/platform/logger.ts';
import { openRetentionPolicies } from './settings/retention_policies.ts';
import { openCold } from './wiring/cold.ts';
import { openDataPlane } from './wiring/data_plane.ts';
import { startDelivery } from './wiring/delivery.ts';
import { serveMetrics } from './wiring/metrics_server.ts';
import { openPlatform, readWorkerEnv } from './wiring/platform.ts';
import { startServices } from './wiring/services.ts';
import { openSettings } from './wiring/settings.ts';
import { bringUpStore } from './wiring/store.ts';
import { startUpkeep } from './wiring/upkeep.ts';

const DRAIN_MS = 20_000;
const STARTING_MS = 5000;

async function main(): Promise<void> {
  const env = readWorkerEnv();
  const starting = reportStarting();
  const platform = await openPlatform(env);
  const { logger, log, partitions } = platform;
  const settings = await openSettings(platform);
  const metricsServer = await serveMetrics(env);
  // Delivery starts ahead of the wait for ClickHouse: webhooks and mails go out whether or not their results can be stored.
  const schema = Promise.withResolvers<undefined>();
  const delivery = await startDelivery(platform, { ...settings, sealer: platform.sealer, storeUp: schema.promise });
  const storeUp = await bringUpStore(platform);
  schema.resolve(undefined);
  const retention = await openRetentionPolicies(log, platform.onProblem);
  const cold = await openCold(platform);
  const dataPlane = await openDataPlane({ platform, settings, retention, storeUp, metricsServer });
  await dataPlane.start((error) => {
    logger.fatal(
      { err: error },
      'the worker failed and ends; other workers read its partitions from their checkpoints',
    );
    die();
  });
  const services = await startServices({ platform, settings, retention, cold, storeUp, dataPlane });
  const upkeep = startUpkeep(platform, storeUp, dataPlane, services);
  metricsServer.ready();
  clearInterval(starting);
  process.send?.({ ready: true });
  // Writes the cache of compiled code now: a process that is killed writes nothing when it ends.
  flushCompileCache();
  logger.info({ partitions, log_base: storeUp.logBase }, 'pipeline worker is up');

  drainOnSignal(logger, async () => {
    const stopped = Promise.all([upkeep.stop(), services.stop(), delivery.stop()]);
    await dataPlane.stop();
    await stopped;
    services.close();
    metricsServer.close();
    retention.close();
    cold.objects.close();
    settings.close();
    await platform.close();
  });
}

/** Tells the supervisor that this process is alive while it waits for the store and reads back its partitions, which takes any time. */
function reportStarting(): NodeJS.Timeout {
  return setInterval(() => {
    if (process.connected) process.send?.({ starting: true });
  }, STARTING_MS);
}

/** Runs `drain` once, on the first signal to end, and leaves the process; ends the process after DRAIN_MS in any case. */
function drainOnSignal(logger: Logger, drain: () => Promise<void>): void {
  let draining = false;
  const begin = async (): Promise<void> => {
    if (draining) return;
    draining = true;
    setTimeout(() => {
      logger.error('draining took too long; the next owner reads from the log what has not landed');
      die();
    }, DRAIN_MS).unref();
    await drain();
    logger.info('pipeline worker has drained');
    leave(0);
  };
  process.on('SIGTERM', () => void begin());
  // Ctrl-C reaches the whole process group; under a supervisor the order of the drain is the supervisor's.
  process.on('SIGINT', () => {
    if (process.env['MILLRACE_SUPERVISED'] !== '1') void begin();
  });
  process.on('disconnect', () => void begin());
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  leave(1);
});
