// Entry of a pipeline worker: settings -> clients -> delivery -> store -> own, read, land -> drain.
// Any number of these run against one NATS and one ClickHouse; nothing else is shared.
import { randomBytes } from 'node:crypto';
import { flushCompileCache } from 'node:module';
import { REPLACED_PARTS_KEPT_S } from '../ops/platform/clickhouse/replaced_parts.ts';
import { EnvError, parseEnv } from '../ops/platform/env.ts';
import { createLogger } from '../ops/platform/logger.ts';
import * as metrics from '../ops/platform/metrics.ts';
import { connectNats } from '../ops/platform/nats/connect.ts';
import { OrgDeletions } from '../ops/exchange/org_deletions.ts';
import { die, leave } from '../ops/platform/leave.ts';
import { PatternRunner } from '../ops/platform/pattern_runner.ts';
import { openSealer } from '../ops/platform/sealing.ts';
import { fixedPartitions, openLog } from '../ops/platform/nats/open_log.ts';
import { watch } from '../ops/platform/nats/watch.ts';
import { createClickHouse } from '../sql/client/client.ts';
import { ownBounds } from './domain/patterns/bounds.ts';
import { openIncidents } from './incidents/open.ts';
import { startJobs } from './jobs/start.ts';
import { startJanitor } from './worker/log_janitor.ts';
import { followJudges } from './judging/enabled_judges.ts';
import { openPiiPolicies } from './settings/pii_policies.ts';
import { openPolicies } from './settings/org_policies.ts';
import { openPrices } from './settings/prices.ts';
import { onTracesDeleted } from './retention/deleted_traces.ts';
import { openRetentionPolicies } from './settings/retention_policies.ts';
import { openCold, startLongJobs } from './wiring/cold.ts';
import { startDelivery } from './wiring/delivery.ts';
import { openErasure } from './wiring/erasure.ts';
import { startEvals } from './wiring/evals.ts';
import { startJudging } from './wiring/judging.ts';
import { openLanding, startGauges } from './wiring/landing.ts';
import { openOrgDeletion } from './wiring/org_deletion.ts';
import { serveMetrics } from './wiring/metrics_server.ts';
import { onTold, type WorkerParts } from './wiring/parts.ts';
import { startPartSweeper } from './landing/part_sweeper.ts';
import { bringUpStore } from './wiring/store.ts';
import { startStoreGauges } from './wiring/store_gauges.ts';

const NATS_WAIT_MS = 10_000;
const DRAIN_MS = 20_000;
const STARTING_MS = 5000;

async function main(): Promise<void> {
  const env = parseEnv(process.env);
  if (env.SERVICE_NATS_URL === undefined || env.SERVICE_CLICKHOUSE_URL === undefined) {
    throw new EnvError(
      'a pipeline worker takes SERVICE_NATS_URL and SERVICE_CLICKHOUSE_URL; npm start sets both and runs everything',
    );
  }
  // What a start waits for (the store, what it remembers of a partition) takes as long as it takes: a supervisor must not end it for that.
  const starting = setInterval(() => {
    if (process.connected) process.send?.({ starting: true });
  }, STARTING_MS);
  const workerId = `w${randomBytes(6).toString('hex')}`;
  const logger = createLogger('pipeline', env.SERVICE_LOG_LEVEL).child({ worker_id: workerId });
  metrics.startMetrics('pipeline', workerId);
  const nc = await connectNats({ url: env.SERVICE_NATS_URL, name: `pipeline-${workerId}`, waitMs: NATS_WAIT_MS });
  const log = await openLog(nc, { replicas: env.SERVICE_NATS_REPLICAS, logBytesMax: env.SERVICE_LOG_MAX_BYTES });
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const clickhouse = createClickHouse({
    url: env.SERVICE_CLICKHOUSE_URL,
    observeQuery: (query, seconds) => {
      metrics.clickhouseQuerySeconds.observe({ query }, seconds);
    },
  });
  const onProblem = (problem: string, cause: unknown) => {
    logger.warn({ err: cause }, problem);
  };
  const patterns = new PatternRunner((result) => {
    metrics.patternJobsTotal.inc({ result });
  });
  const parts: WorkerParts = { env, logger, log, clickhouse, workerId, onProblem };
  const sealer = await openSealer(log, env.SERVICE_ENCRYPTION_KEY);
  const deletions = await OrgDeletions.open(log, onProblem);
  const [policies, piiPolicies, prices, judgeRecords, budgetRecords] = await Promise.all([
    openPolicies(log, onProblem),
    openPiiPolicies(log, sealer, { onProblem, boundsOf: (org_id) => ownBounds(patterns, org_id) }),
    openPrices(log, onProblem),
    watch(log, 'judges', onProblem),
    watch(log, 'budgets', onProblem),
  ]);
  const exposed = await serveMetrics(env);
  // Ahead of the wait for ClickHouse: what happened is delivered whether or not it can be stored just now.
  const schema = Promise.withResolvers<undefined>();
  const delivery = await startDelivery(parts, { sealer, budgetRecords, piiPolicies, storeUp: schema.promise });
  const storeUp = await bringUpStore(parts);
  schema.resolve(undefined);
  const retention = await openRetentionPolicies(log, onProblem);
  const cold = await openCold(parts);
  let up = false;
  const landing = await openLanding({
    ...parts,
    ...storeUp,
    policies,
    retention,
    piiPolicies,
    prices,
    judges: followJudges(judgeRecords, onProblem),
    budgetRecords,
    deletions,
    partitions,
    patterns,
    metricsUrl: exposed.url,
    isUp: () => up,
  });
  const { ownership, worker, mover, budgets } = landing;

  worker.start((error) => {
    logger.fatal(
      { err: error },
      'the worker failed; ending, so that its partitions are read again from their checkpoints',
    );
    die();
  });
  onTracesDeleted(nc, () => {
    worker.forgetComplete();
  });
  await ownership.start();
  mover.start();
  const incidents = await openIncidents({
    log,
    logger,
    clickhouse,
    now: () => Date.now(),
    isLeader: () => ownership.isLeader,
    observe: (queue, result, count) => {
      metrics.queueMessagesTotal.inc({ queue, result }, count);
    },
    onTold,
  });
  incidents.start();
  const judging = startJudging(parts, { policies, piiPolicies, deletions, judgeRecords, partitions });
  const evals = await startEvals(parts, {
    policies,
    prices,
    piiPolicies,
    models: judging.models,
    patterns,
    isLeader: () => ownership.isLeader,
  });
  const jobs = await startJobs({
    budgets: budgets.keeper,
    incidents,
    retention: cold.retention,
    log,
    clickhouse,
    workerId,
    partitions,
    sync: storeUp.sync,
    logger,
    observe: (job, outcome, seconds) => {
      metrics.jobSeconds.observe({ job, outcome }, seconds);
    },
    onTold,
  });
  const erasure = await openErasure({ ...parts, ...storeUp, sealer, cold: cold.cold, partitions, worker, deletions });
  const orgDeletion = await openOrgDeletion({ ...parts, ...storeUp, deletions, objects: cold.objects, partitions });
  const longJobs = await startLongJobs(parts, cold, retention, (records) => ({
    ...erasure.handlers(records),
    ...orgDeletion.handlers(records),
  }));
  const janitor = startJanitor(log, logger, () => (ownership.isLeader ? ownership.landedByAll : null));
  const gauges = startGauges(landing, jobs);
  const storeGauges = startStoreGauges(clickhouse, () => ownership.isLeader);
  const isEmbedded = env.SERVICE_CLICKHOUSE_DATA_DIR !== undefined;
  const endSweeps = isEmbedded
    ? startPartSweeper({
        clickhouse,
        logger,
        isLeader: () => ownership.isLeader,
        sync: storeUp.sync,
        keptS: REPLACED_PARTS_KEPT_S,
      })
    : undefined;
  up = true;
  exposed.ready();
  clearInterval(starting);
  process.send?.({ ready: true });
  // Kept now, as a process that is killed writes nothing at its end.
  flushCompileCache();
  logger.info({ partitions, log_base: storeUp.logBase }, 'pipeline worker is up');

  let draining = false;
  const drain = async (): Promise<void> => {
    if (draining) return;
    draining = true;
    setTimeout(() => {
      logger.error('draining took too long; what is not landed is read again from the log');
      die();
    }, DRAIN_MS).unref();
    janitor.stop();
    clearInterval(gauges);
    clearInterval(storeGauges);
    const delivered = Promise.all([
      jobs.stop(),
      longJobs.stop(),
      incidents.stop(),
      evals.stop(),
      judging.stop(),
      delivery.stop(),
      endSweeps?.(),
    ]);
    await mover.stop();
    // The store or NATS may be away: whoever owns the partitions next finds the last checkpoint.
    await ownership.stop().catch((error: unknown) => {
      logger.warn(
        { err: error },
        'partitions could not be handed over; they are taken when this worker is not heard of any more',
      );
    });
    await worker.stop();
    await budgets.stop();
    await delivered;
    erasure.stop();
    orgDeletion.stop();
    exposed.close();
    retention.close();
    cold.objects.close();
    for (const bucket of [policies, piiPolicies, prices, judgeRecords, budgetRecords, deletions]) bucket.close();
    await nc.close();
    await clickhouse.close();
    logger.info('pipeline worker has drained');
    leave(0);
  };
  process.on('SIGTERM', () => void drain());
  // Ctrl-C reaches the whole process group; under a supervisor the order of the drain is the supervisor's.
  process.on('SIGINT', () => {
    if (process.env['MILLRACE_SUPERVISED'] !== '1') void drain();
  });
  process.on('disconnect', () => void drain());
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  leave(1);
});
