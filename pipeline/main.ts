// Entry point of a pipeline worker. It opens the parts in the order in which they depend on each
// other, and drains them on SIGTERM.
//
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
import { movePartitions } from './wiring/moves.ts';
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
  // Delivery starts before ClickHouse answers, so that webhooks and mails are sent even if their
  // results cannot be stored yet.
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
  void movePartitions(platform, storeUp);
  const services = await startServices({ platform, settings, retention, cold, storeUp, dataPlane });
  const upkeep = startUpkeep(platform, storeUp, dataPlane, services);
  metricsServer.ready();
  clearInterval(starting);
  process.send?.({ ready: true });
  // Writes the compile cache now, because a killed process never writes it.
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

/**
 * Tells the supervisor regularly that this process is starting, so that the supervisor does not end
 * it: waiting for the store and reading partitions back may take any time.
 */
function reportStarting(): NodeJS.Timeout {
  return setInterval(() => {
    if (process.connected) process.send?.({ starting: true });
  }, STARTING_MS);
}

/**
 * Runs `drain` once, on the first signal, and exits. Exits after DRAIN_MS even if `drain` has not
 * finished.
 */
function drainOnSignal(logger: Logger, drain: () => Promise<void>): void {
  let draining = false;
  const begin = async (): Promise<void> => {
    if (draining) return;
    draining = true;
    setTimeout(() => {
      logger.error('draining took too long; the next owners read from the log what has not landed');
      die();
    }, DRAIN_MS).unref();
    await drain();
    logger.info('pipeline worker has drained');
    leave(0);
  };
  process.on('SIGTERM', () => void begin());
  // Ctrl-C reaches the whole process group. Under a supervisor, the supervisor decides when each
  // process drains.
  process.on('SIGINT', () => {
    if (process.env['MILLRACE_SUPERVISED'] !== '1') void begin();
  });
  process.on('disconnect', () => void begin());
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  leave(1);
});
