// Every metric of the service, as data. Each process keeps its own registry; the API's /metrics joins those of all.
// Labels are closed sets: no org, key, id or text ever becomes one.
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** What this process exposes. */
export const registry = new Registry();

/** The part of the service that a metric belongs to; `shared` ones are written by both kinds of process. */
type Role = 'api' | 'pipeline' | 'shared';
const roleOf = new Map<string, Role>();

interface Spec<Label extends string> {
  name: string;
  help: string;
  role: Role;
  labels?: readonly Label[];
}

function options<Label extends string>(spec: Spec<Label>) {
  roleOf.set(spec.name, spec.role);
  return { name: spec.name, help: spec.help, labelNames: [...(spec.labels ?? [])], registers: [registry] };
}

const counter = <Label extends string>(spec: Spec<Label>) => new Counter<Label>(options(spec));
const gauge = <Label extends string>(spec: Spec<Label>) => new Gauge<Label>(options(spec));
const histogram = <Label extends string>(spec: Spec<Label>, buckets: number[]) =>
  new Histogram<Label>({ ...options(spec), buckets });

const FAST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const SLOW_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const httpRequestDurationSeconds = histogram(
  {
    name: 'http_request_duration_seconds',
    help: 'Time from a request to the end of its answer',
    role: 'api',
    labels: ['route', 'method', 'status'],
  },
  SLOW_SECONDS,
);
export const ingestRequestsTotal = counter({
  name: 'millrace_ingest_requests_total',
  help: 'Ingest requests answered',
  role: 'api',
  labels: ['format', 'status'],
});
export const ingestEventsTotal = counter({
  name: 'millrace_ingest_events_total',
  help: 'Events accepted into the log',
  role: 'api',
  labels: ['format'],
});
export const ingestBytesTotal = counter({
  name: 'millrace_ingest_bytes_total',
  help: 'Bytes of accepted request bodies after decompression',
  role: 'api',
});
export const diskFreeBytes = gauge({
  name: 'millrace_disk_free_bytes',
  help: 'Room on the disk that holds the data folder',
  role: 'api',
});
export const diskLow = gauge({
  name: 'millrace_disk_low',
  help: '1 while the disk is nearly full and ingest is refused',
  role: 'api',
});
export const checkOk = gauge({
  name: 'millrace_check_ok',
  help: 'What /readyz says, looked at every few seconds: 1 where NATS or ClickHouse answers, every partition has a live worker, or hard limits can be decided',
  role: 'api',
  labels: ['check'],
});
export const partitionsUnowned = gauge({
  name: 'millrace_partitions_unowned',
  help: 'Partitions of the log that no live worker owns, or that one has owned for half a minute and does not read yet',
  role: 'api',
});
export const streamMessages = gauge({
  name: 'millrace_stream_messages',
  help: 'Messages that a stream of NATS holds',
  role: 'api',
  labels: ['stream'],
});
export const streamBytes = gauge({
  name: 'millrace_stream_bytes',
  help: 'Bytes that a stream of NATS holds',
  role: 'api',
  labels: ['stream'],
});
export const streamMaxBytes = gauge({
  name: 'millrace_stream_max_bytes',
  help: 'Bytes that a stream of NATS may hold',
  role: 'api',
  labels: ['stream'],
});
export const budgetAccountsUnread = gauge({
  name: 'millrace_budget_accounts_unread',
  help: 'Orgs with a hard limit whose usage could not be read from the store: their limits hold by what was read before',
  role: 'api',
});
export const rateLimitedTotal = counter({
  name: 'millrace_rate_limited_total',
  help: "Requests refused by a tenant's rate limit, share of the backlog, or bound of calls under way through the gateway",
  role: 'api',
  labels: ['kind'],
});
export const logPublishSeconds = histogram(
  {
    name: 'millrace_log_publish_seconds',
    help: 'Time from the publish of a log message to its confirmation',
    role: 'api',
  },
  FAST_SECONDS,
);
export const logPublishEvents = histogram(
  { name: 'millrace_log_publish_events', help: 'Events that shared one log message', role: 'api' },
  [1, 2, 5, 10, 25, 50, 100, 200, 500, 1000, 2000],
);

export const clickhouseQuerySeconds = histogram(
  { name: 'millrace_clickhouse_query_seconds', help: 'Time of a ClickHouse query', role: 'shared', labels: ['query'] },
  SLOW_SECONDS,
);
export const clickhouseInsertSeconds = histogram(
  {
    name: 'millrace_clickhouse_insert_seconds',
    help: 'Time of a ClickHouse insert',
    role: 'shared',
    labels: ['table'],
  },
  SLOW_SECONDS,
);
export const clickhouseInsertRowsTotal = counter({
  name: 'millrace_clickhouse_insert_rows_total',
  help: 'Rows inserted into ClickHouse',
  role: 'shared',
  labels: ['table'],
});

export const pipelineEventsReceivedTotal = counter({
  name: 'millrace_pipeline_events_received_total',
  help: 'Events that a stage took',
  role: 'pipeline',
  labels: ['stage'],
});
export const pipelineEventsEmittedTotal = counter({
  name: 'millrace_pipeline_events_emitted_total',
  help: 'Events that a stage passed on',
  role: 'pipeline',
  labels: ['stage'],
});
export const pipelineEventsDroppedTotal = counter({
  name: 'millrace_pipeline_events_dropped_total',
  help: 'Events that a stage dropped on purpose',
  role: 'pipeline',
  labels: ['stage', 'reason'],
});
export const pipelineEventsDeadTotal = counter({
  name: 'millrace_pipeline_events_dead_total',
  help: 'Events that went to the dead letters',
  role: 'pipeline',
  labels: ['stage', 'reason'],
});
export const deadLettersLostTotal = counter({
  name: 'millrace_dead_letters_lost_total',
  help: 'Dead letters that were not kept, as there was no room for them',
  role: 'pipeline',
});
export const pipelineLagMessages = gauge({
  name: 'millrace_pipeline_lag_messages',
  help: 'Log messages not landed yet',
  role: 'pipeline',
});
export const pipelineLagSeconds = gauge({
  name: 'millrace_pipeline_lag_seconds',
  help: 'Age of the oldest log message not landed yet',
  role: 'pipeline',
});
export const pipelineBatchSeconds = histogram(
  {
    name: 'millrace_pipeline_batch_seconds',
    help: 'Time of a stage over one batch',
    role: 'pipeline',
    labels: ['stage'],
  },
  SLOW_SECONDS,
);
export const samplingEventsTotal = counter({
  name: 'millrace_sampling_events_total',
  help: 'Events by how much of them is stored (full, summary) and why: a keep rule, the profile, their trace, or no room to wait for it',
  role: 'pipeline',
  labels: ['retain', 'reason'],
});
export const samplingHeldTraces = gauge({
  name: 'millrace_sampling_held_traces',
  help: 'Traces that tail sampling holds',
  role: 'pipeline',
});
export const samplingHeldBytes = gauge({
  name: 'millrace_sampling_held_bytes',
  help: 'Memory of the traces that tail sampling holds, estimated',
  role: 'pipeline',
});
export const pipelineOpenTraces = gauge({
  name: 'millrace_pipeline_open_traces',
  help: 'Traces that are not complete yet',
  role: 'pipeline',
});
export const pipelinePartitionsOwned = gauge({
  name: 'millrace_pipeline_partitions_owned',
  help: 'Partitions that this worker owns',
  role: 'pipeline',
});
export const pipelineDedupeIds = gauge({
  name: 'millrace_pipeline_dedupe_ids',
  help: 'Event ids that repeats are recognised by',
  role: 'pipeline',
});
export const pipelineDedupeBytes = gauge({
  name: 'millrace_pipeline_dedupe_bytes',
  help: 'Memory of what repeats are recognised by: tables of ids, and filters in place of older ones',
  role: 'pipeline',
});
export const pipelineTextsWaiting = gauge({
  name: 'millrace_pipeline_texts_waiting',
  help: 'Texts landed but not searchable yet',
  role: 'pipeline',
});
export const serviceEventsPublishedTotal = counter({
  name: 'millrace_service_events_published_total',
  help: 'Platform events published',
  role: 'pipeline',
  labels: ['event'],
});

export const queueMessagesTotal = counter({
  name: 'millrace_queue_messages_total',
  help: 'Tries at messages of work queues that have ended, by how: done, retried, dead',
  role: 'pipeline',
  labels: ['queue', 'result'],
});

export const jobSeconds = histogram(
  {
    name: 'millrace_job_seconds',
    help: 'Time of a run of a scheduled job, by how it ended: done, failed',
    role: 'pipeline',
    labels: ['job', 'outcome'],
  },
  [0.01, 0.1, 1, 10, 60, 300, 600, 1800],
);
export const jobOverdueSeconds = gauge({
  name: 'millrace_job_overdue_seconds',
  help: 'How long the newest slot of a scheduled job has been waiting to be run to its end',
  role: 'pipeline',
  labels: ['job'],
});
export const clickhousePartsMax = gauge({
  name: 'millrace_clickhouse_parts_max',
  help: 'Parts of the partition that has most of them; the leader shows it',
  role: 'pipeline',
});
export const clickhouseDiskFreeBytes = gauge({
  name: 'millrace_clickhouse_disk_free_bytes',
  help: "Free bytes of ClickHouse's disk that is fullest, as it says itself; the leader shows it",
  role: 'pipeline',
});
export const clickhouseDiskBytes = gauge({
  name: 'millrace_clickhouse_disk_bytes',
  help: 'Bytes of that disk in all; the leader shows it',
  role: 'pipeline',
});
export const webhookQueuedTotal = counter({
  name: 'millrace_webhook_queued_total',
  help: 'Deliveries put into the queue, one an event and endpoint',
  role: 'pipeline',
});
export const webhookDeliveriesTotal = counter({
  name: 'millrace_webhook_deliveries_total',
  help: 'Ends of webhook tries: delivered, failed, retrying, dead-lettered; dropped with their receiver; overflown into the dead letters',
  role: 'pipeline',
  labels: ['outcome'],
});
// From zero on, so that the first one is an increase to whoever asks for increases.
for (const outcome of ['dead-lettered', 'overflown']) webhookDeliveriesTotal.inc({ outcome }, 0);
export const webhookAttemptSeconds = histogram(
  { name: 'millrace_webhook_attempt_seconds', help: 'Time of one webhook try', role: 'pipeline' },
  SLOW_SECONDS,
);
export const webhookInFlight = gauge({
  name: 'millrace_webhook_in_flight',
  help: 'Webhook tries under way',
  role: 'pipeline',
});
export const webhookBacklog = gauge({
  name: 'millrace_webhook_backlog',
  help: 'Deliveries that wait, those for their next try included',
  role: 'pipeline',
});
export const webhookLogDroppedTotal = counter({
  name: 'millrace_webhook_log_dropped_total',
  help: 'Rows of the log of webhook tries that were never written',
  role: 'pipeline',
});

export const llmCallsTotal = counter({
  name: 'millrace_llm_calls_total',
  help: 'Tries of calls to the upstream for models, by how they ended',
  role: 'shared',
  labels: ['result'],
});
export const llmCallSeconds = histogram(
  { name: 'millrace_llm_call_seconds', help: 'Time of one try of a call to the upstream for models', role: 'shared' },
  [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60],
);
export const gatewayCallsTotal = counter({
  name: 'millrace_gateway_calls_total',
  help: 'Calls of models through the gateway, by how they ended',
  role: 'api',
  labels: ['operation', 'outcome'],
});
export const gatewayRecordsLostTotal = counter({
  name: 'millrace_gateway_records_lost_total',
  help: 'Calls through the gateway that were answered and never recorded',
  role: 'api',
  labels: ['reason'],
});
for (const reason of ['no_room', 'given_up']) gatewayRecordsLostTotal.inc({ reason }, 0);
export const judgingTokensTotal = counter({
  name: 'millrace_judging_tokens_total',
  help: 'Tokens of calls that judges and dataset runs made',
  role: 'pipeline',
  labels: ['direction'],
});
export const judgingTasksTotal = counter({
  name: 'millrace_judging_tasks_total',
  help: 'Live traces for LLM judges, by how they ended',
  role: 'pipeline',
  labels: ['outcome'],
});
export const patternJobsTotal = counter({
  name: 'millrace_pattern_jobs_total',
  help: 'Jobs of patterns and rules of organizations that ran in a thread of their own, by how they ended: done, late (its deadline), refused (too many waited), failed, spent (its organization had had its share of time)',
  role: 'shared',
  labels: ['result'],
});
export const evalsRunning = gauge({
  name: 'millrace_evals_running',
  help: 'Evals and dataset runs that are running; the leader shows them',
  role: 'pipeline',
});
export const evalScoresTotal = counter({
  name: 'millrace_eval_scores_total',
  help: 'Scores of evals and dataset runs, by verdict',
  role: 'pipeline',
  labels: ['verdict'],
});

/**
 * Makes the registry this process's own: starts the process and Node metrics, labels every series with `process`, and
 * leaves out the metrics that only the other kind of process writes, so that none shows a zero that nobody measured.
 * Call once, first thing in a main.
 */
export function startMetrics(role: 'api' | 'pipeline', processLabel: string): void {
  for (const [name, owner] of roleOf) {
    if (owner !== 'shared' && owner !== role) registry.removeSingleMetric(name);
  }
  registry.setDefaultLabels({ process: processLabel });
  collectDefaultMetrics({ register: registry });
}

/** Joins expositions of several processes into one: samples of a family stand together under one HELP and TYPE, as scrapers ask. */
export function joinExpositions(texts: readonly string[]): string {
  const families = new Map<string, { head: string[]; samples: string[] }>();
  for (const text of texts) {
    let family: { head: string[]; samples: string[] } | undefined;
    let known = false;
    for (const line of text.split('\n')) {
      if (line === '') continue;
      if (line.startsWith('# HELP ') || line.startsWith('# TYPE ')) {
        const name = line.split(' ')[2] ?? '';
        if (line.startsWith('# HELP ')) {
          known = families.has(name);
          family = families.get(name) ?? { head: [], samples: [] };
          families.set(name, family);
        }
        if (!known) family?.head.push(line);
      } else if (!line.startsWith('#')) {
        family?.samples.push(line);
      }
    }
  }
  return [...families.values()].flatMap(({ head, samples }) => [...head, ...samples]).join('\n') + '\n';
}
