// Entry of a pipeline worker: settings -> clients -> topology -> own, read, land -> drain.
// Any number of these run against one NATS and one ClickHouse; nothing else is shared.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import { createSyncer } from '../ops/clickhouse/durability.ts';
import { EnvError, parseEnv, type Env } from '../ops/env.ts';
import { createLogger, type Logger } from '../ops/log.ts';
import * as metrics from '../ops/metrics.ts';
import { connectNats } from '../ops/nats/connect.ts';
import { openSealer } from '../ops/sealing.ts';
import { fixedPartitions, openLog, settle, type Log } from '../ops/streams.ts';
import { ensureAnalyst } from '../sql/analyst.ts';
import { createClickHouse, type ClickHouse } from '../sql/client.ts';
import { migrate } from '../sql/migrate.ts';
import { type Budgets, openBudgets } from './budgets/open.ts';
import { alertTargets, openBudgetRecords } from './budgets/records.ts';
import { createAuditLander } from './delivery/audit_lander.ts';
import { createMailer } from './delivery/mail.ts';
import { startWebhooks } from './delivery/webhooks.ts';
import { createPriceBook } from './domain/pricing.ts';
import { startJobs } from './jobs/start.ts';
import { backoffMs } from './runtime/backoff.ts';
import { startJanitor } from './runtime/janitor.ts';
import { Lander } from './runtime/landing.ts';
import { ClickHouseLandingStore } from './runtime/landing_store.ts';
import { Ownership, type PartitionRecord } from './runtime/ownership.ts';
import { LogReader } from './runtime/log_reader.ts';
import { openPolicies, type Policies } from './runtime/policies.ts';
import { openPrices, type Prices } from './runtime/prices.ts';
import { emptyMemory, rebuild } from './runtime/partition_state.ts';
import { createPublisher } from './runtime/publish.ts';
import { createStageRunner, type StageObserver } from './runtime/stage_runner.ts';
import { TextMover } from './runtime/text_mover.ts';
import { Worker } from './runtime/worker.ts';
import { createDecodeStage } from './stages/decode/decode.ts';
import { createDedupeStage } from './stages/dedupe/dedupe.ts';
import { IdWindow } from './stages/dedupe/id_window.ts';
import { createMeterStage } from './stages/meter/meter.ts';
import { createSampleStage } from './stages/sample/sample.ts';
import { createScoreStage } from './stages/score/score.ts';
import { FULL_TEXT_DAYS, LIMITS, type Topology } from './topology.ts';

const NATS_WAIT_MS = 10_000;
const DRAIN_MS = 20_000;
const GAUGES_MS = 1000;
const HOUR_MS = 3_600_000;

const observer: StageObserver = {
  batch(stage, seconds, received, emitted) {
    metrics.pipelineBatchSeconds.observe({ stage }, seconds);
    metrics.pipelineEventsReceivedTotal.inc({ stage }, received);
    metrics.pipelineEventsEmittedTotal.inc({ stage }, emitted);
  },
  dropped(stage, reason, count) {
    metrics.pipelineEventsDroppedTotal.inc({ stage, reason }, count);
  },
  dead(stage, reason, count) {
    metrics.pipelineEventsDeadTotal.inc({ stage, reason }, count);
  },
};

/** Tries until it works: the store may come up after the worker, and comes back after being away. */
async function untilDone<T>(logger: Logger, what: string, task: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await task();
    } catch (error) {
      logger.warn({ err: error, attempt }, `${what}: trying again`);
      await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt)));
    }
  }
}

function createTopology(env: Env, store: ClickHouseLandingStore, policies: Policies, prices: Prices, worker: () => Worker): Topology {
  const windowMs = env.SERVICE_DEDUP_WINDOW_HOURS * HOUR_MS;
  const orphan = new IdWindow(windowMs, 0);
  return {
    decode: createDecodeStage({ prices: createPriceBook(prices.of), maxPromptTokens: (org_id) => policies.of(org_id).max_prompt_tokens }),
    dedupe: createDedupeStage({
      // A partition lost in the middle of a batch has no window any more; its rows are not written.
      windowOf: (partition) => worker().states.get(partition)?.window ?? orphan,
      findLanded: (events) => store.findLanded(events),
      now: () => Date.now(),
    }),
    sample: createSampleStage({
      profile: env.SERVICE_SAMPLING_PROFILE,
      enabled: env.SERVICE_SAMPLING_ENABLED,
      slowMs: env.SERVICE_SAMPLING_SLOW_MS,
    }),
    meter: createMeterStage(),
    score: createScoreStage({ judges: [] }),
  };
}

function serveMetrics(): Promise<{ url: string; close(): void }> {
  const server = createServer((_req, res) => {
    void metrics.registry.metrics().then((text) => {
      res.setHeader('Content-Type', metrics.registry.contentType).end(text);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      resolve({
        url: `http://127.0.0.1:${String(port)}/metrics`,
        close: () => {
          server.closeAllConnections();
          server.close();
        },
      });
    });
  });
}

/** Newest schema, and the analysts' user where the server keeps its users by SQL. */
async function bringUpStore(env: Env, client: ClickHouse, logger: Logger): Promise<void> {
  const { SERVICE_CLICKHOUSE_CLUSTER: cluster, SERVICE_CLICKHOUSE_ANALYST_PASSWORD: password } = env;
  await migrate(client, { cluster });
  const refusal = password === undefined ? null : await ensureAnalyst(client, password, cluster);
  if (refusal !== null) logger.debug({ reason: refusal }, 'the store keeps the user analyst by itself');
}

interface Parts {
  env: Env;
  logger: Logger;
  log: Log;
  client: ClickHouse;
  policies: Policies;
  prices: Prices;
  budgetRecords: Awaited<ReturnType<typeof openBudgetRecords>>;
  partitions: number;
  logBase: number;
  workerId: string;
  metricsUrl: string;
  /** Resolves when everything landed before the call would survive power loss. */
  sync: () => Promise<void>;
}

/** Chooses how landed rows are made durable: by one sync before a checkpoint where the store is on this machine, else by the store itself. */
async function chooseDurability(env: Env, store: ClickHouseLandingStore): Promise<() => Promise<void>> {
  const syncer = env.SERVICE_CLICKHOUSE_DATA_DIR === undefined ? null : await createSyncer(env.SERVICE_CLICKHOUSE_DATA_DIR);
  await store.syncInserts(syncer === null);
  return () => (syncer === null ? Promise.resolve() : syncer.sync());
}

async function assemble({ env, logger, log, client, policies, prices, budgetRecords, partitions, logBase, workerId, metricsUrl, sync }: Parts) {
  const store = new ClickHouseLandingStore(client, workerId);
  const windowMs = env.SERVICE_DEDUP_WINDOW_HOURS * HOUR_MS;
  const publisher = createPublisher(log, logger, {
    now: () => Date.now(),
    onTold: (event, count) => {
      metrics.serviceEventsPublishedTotal.inc({ event }, count);
    },
  });
  const topology = createTopology(env, store, policies, prices, () => worker);
  const ownership = new Ownership({
    nc: log.nc,
    kv: await log.bucket('partitions'),
    workerId,
    partitions,
    metricsUrl,
    log: logger,
    acquire: (records) => untilDone(logger, 'bringing partitions up', () => bringUp(records)),
    release: (held) => worker.release(held),
    lose: (partition) => {
      worker.lose(partition);
    },
  });
  const lander = new Lander({
    store,
    workerId,
    log: logger,
    owned: () => ownership.owned,
    onFenced: (partition) => {
      logger.warn({ partition }, 'the store has a newer owner of this partition');
      worker.lose(partition);
    },
    observe: (table, rows, seconds) => {
      metrics.clickhouseInsertSeconds.observe({ table }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table }, rows);
    },
  });
  const reader: LogReader = new LogReader({
    js: log.js,
    log: logger,
    onMessage: () => {
      worker.wake();
    },
  });
  const budgets = await openBudgets({
    log,
    logger,
    clickhouse: client,
    policies,
    isLeader: () => ownership.isLeader,
    records: budgetRecords,
    onTold: (event) => {
      metrics.serviceEventsPublishedTotal.inc({ event });
    },
  });
  const worker: Worker = new Worker({
    reader,
    prepare: {
      topology,
      stages: createStageRunner(observer, logger),
      observer,
      logBase,
      partitions,
      isBehind: () => reader.lag > 0,
      textDays: () => FULL_TEXT_DAYS,
      findTraces: (partition, traces) => untilDone(logger, 'looking up traces', () => store.findTraces(partition, traces)),
      now: () => Date.now(),
      yield: () => new Promise((resolve) => setImmediate(resolve)),
    },
    lander,
    log: logger,
    isOwner: (partition) => ownership.isOwner(partition),
    bury: (casualties) => publisher.bury(casualties),
    tell: (events) => publisher.tell(events),
    landed: budgets.landed,
    sync,
    checkpoint: (partition, landed, completed) => ownership.checkpoint(partition, landed, completed),
  });
  async function bringUp(records: PartitionRecord[]): Promise<void> {
    // Tried again after a failure, it leaves alone what is up already: that state is ahead of what its record says.
    const mine = records.filter(({ partition, epoch }) => ownership.isOwner(partition) && worker.states.get(partition)?.epoch !== epoch);
    await store.fence(mine.map((record) => [record.partition, record.epoch] as const));
    for (const record of mine) {
      const memory = emptyMemory(windowMs, Math.ceil(LIMITS.dedupe_ids_exact_max / partitions), Date.now());
      const history = await store.partitionHistory(record, logBase, windowMs, memory);
      const limits = {
        graceMs: env.SERVICE_TRACE_GRACE_MS,
        idleMs: env.SERVICE_TRACE_IDLE_MS,
        openMax: Math.ceil(LIMITS.open_traces_max / partitions),
        doneMax: Math.ceil(LIMITS.done_traces_max / partitions),
      };
      const state = rebuild(record, history, memory, { logBase, limits, now: Date.now() });
      if (ownership.epochOf(record.partition) === record.epoch) worker.add(state);
    }
  }
  const mover = new TextMover({
    store,
    workerId,
    log: logger,
    isLeader: () => ownership.isLeader,
    sync,
    observe: (waiting, moved, seconds) => {
      metrics.pipelineTextsWaiting.set(waiting);
      if (moved === 0) return;
      metrics.clickhouseInsertSeconds.observe({ table: 'span_texts' }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table: 'span_texts' }, moved);
    },
  });
  return { ownership, worker, mover, reader, budgets };
}

function auditLander({ log, logger, client }: Pick<Parts, 'log' | 'logger' | 'client'>) {
  return createAuditLander({
    log,
    logger,
    clickhouse: client,
    now: () => Date.now(),
    observe: observeQueue,
    onLanded: (rows, seconds) => {
      metrics.clickhouseInsertSeconds.observe({ table: 'audit_log' }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table: 'audit_log' }, rows);
    },
    onTold: (event) => {
      metrics.serviceEventsPublishedTotal.inc({ event });
    },
  });
}

const observeQueue = (queue: string, result: 'done' | 'retried' | 'dead', count: number): void => {
  metrics.queueMessagesTotal.inc({ queue, result }, count);
};

function startGauges(worker: Worker, reader: LogReader, budgets: Budgets): NodeJS.Timeout {
  return setInterval(() => {
    const states = [...worker.states.values()];
    budgets.progress(states);
    metrics.pipelinePartitionsOwned.set(states.length);
    metrics.pipelineOpenTraces.set(states.reduce((sum, { book }) => sum + book.openCount, 0));
    metrics.pipelineDedupeIds.set(states.reduce((sum, { window }) => sum + window.size, 0));
    metrics.pipelineLagMessages.set(reader.lag);
    const behind = reader.lag > 0 || states.some((state) => state.landed_through < state.prepared_through);
    const landedAt = Math.max(0, ...states.map((state) => state.landed_at));
    metrics.pipelineLagSeconds.set(behind && landedAt > 0 ? Math.max(0, Date.now() - landedAt) / 1000 : 0);
  }, GAUGES_MS);
}

async function main(): Promise<void> {
  const env = parseEnv(process.env);
  if (env.SERVICE_NATS_URL === undefined || env.SERVICE_CLICKHOUSE_URL === undefined) {
    throw new EnvError('a pipeline worker takes SERVICE_NATS_URL and SERVICE_CLICKHOUSE_URL; npm start sets both and runs everything');
  }
  const workerId = `w${randomBytes(6).toString('hex')}`;
  const logger = createLogger('pipeline', env.SERVICE_LOG_LEVEL).child({ worker_id: workerId });
  metrics.startMetrics('pipeline', workerId);
  const nc = await connectNats({ url: env.SERVICE_NATS_URL, name: `pipeline-${workerId}`, waitMs: NATS_WAIT_MS });
  const log = await openLog(nc, { replicas: env.SERVICE_NATS_REPLICAS, logBytesMax: env.SERVICE_LOG_MAX_BYTES });
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const client = createClickHouse({
    url: env.SERVICE_CLICKHOUSE_URL,
    observeQuery: (query, seconds) => {
      metrics.clickhouseQuerySeconds.observe({ query }, seconds);
    },
  });
  const onProblem = (problem: string, cause: unknown) => {
    logger.warn({ err: cause }, problem);
  };
  const sealer = await openSealer(log, env.SERVICE_ENCRYPTION_KEY);
  const budgetRecords = await openBudgetRecords(log, onProblem);
  // Ahead of the wait for ClickHouse: what happened is delivered whether or not it can be stored just now.
  const webhooks = await startWebhooks({
    log,
    logger,
    clickhouse: client,
    sealer,
    alertTargetOf: alertTargets(budgetRecords, sealer),
    publicOnly: env.SERVICE_ENV !== 'development',
    now: () => Date.now(),
  });
  await untilDone(logger, 'waiting for ClickHouse', () => bringUpStore(env, client, logger));
  const { base: logBase } = await untilDone(logger, 'placing the log', () =>
    settle(log, 'log', async () => ({ base: await new ClickHouseLandingStore(client, workerId).newestPosition() })),
  );
  const sync = await untilDone(logger, 'choosing durability', () => chooseDurability(env, new ClickHouseLandingStore(client, workerId)));
  const [policies, prices] = await Promise.all([openPolicies(log, onProblem), openPrices(log, onProblem)]);
  const exposed = await serveMetrics();
  const { ownership, worker, mover, reader, budgets } = await assemble({
    env,
    logger,
    log,
    client,
    policies,
    prices,
    budgetRecords,
    partitions,
    logBase,
    workerId,
    metricsUrl: exposed.url,
    sync,
  });

  worker.start((error) => {
    logger.fatal({ err: error }, 'the worker failed; ending, so that its partitions are read again from their checkpoints');
    process.exit(1);
  });
  await ownership.start();
  mover.start();
  const audit = auditLander({ log, logger, client });
  audit.start();
  const mailer = createMailer({
    log,
    logger,
    smtpUrl: env.SERVICE_SMTP_URL,
    from: env.SERVICE_MAIL_FROM,
    now: () => Date.now(),
    observe: observeQueue,
  });
  mailer.start();
  const jobs = await startJobs({
    budgets: budgets.keeper,
    log,
    clickhouse: client,
    workerId,
    logger,
    observe: (job, outcome, seconds) => {
      metrics.jobSeconds.observe({ job, outcome }, seconds);
    },
    onTold: (event) => {
      metrics.serviceEventsPublishedTotal.inc({ event });
    },
  });
  const janitor = startJanitor(log, logger, () => (ownership.isLeader ? ownership.landedByAll : null));
  const gauges = startGauges(worker, reader, budgets);
  process.send?.({ ready: true });
  logger.info({ partitions, log_base: logBase }, 'pipeline worker is up');

  let draining = false;
  const drain = async (): Promise<void> => {
    if (draining) return;
    draining = true;
    setTimeout(() => {
      logger.error('draining took too long; what is not landed is read again from the log');
      process.exit(1);
    }, DRAIN_MS).unref();
    janitor.stop();
    clearInterval(gauges);
    const delivered = Promise.all([jobs.stop(), audit.stop(), mailer.stop(), webhooks.stop()]);
    await mover.stop();
    await ownership.stop();
    await worker.stop();
    await budgets.stop();
    await delivered;
    exposed.close();
    policies.close();
    prices.close();
    await nc.close();
    await client.close();
    logger.info('pipeline worker has drained');
    process.exit(0);
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
  process.exit(1);
});
