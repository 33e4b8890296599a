// Every metric of the service, declared as data. Each process has its own registry; /metrics of the
// API joins those of all processes. Labels are closed sets: no organization, key, id or text
// becomes a label.
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** The metrics that this process exposes. */
export const registry = new Registry();

/** The kind of process that writes a metric; both kinds write `shared` ones. */
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
    help: 'Time from receiving a request to the end of its response',
    role: 'api',
    labels: ['route', 'method', 'status'],
  },
  SLOW_SECONDS,
);
export const ingestRequestsTotal = counter({
  name: 'millrace_ingest_requests_total',
  help: 'Ingest requests by format and response status',
  role: 'api',
  labels: ['format', 'status'],
});
export const ingestEventsTotal = counter({
  name: 'millrace_ingest_events_total',
  help: 'Events accepted into the ingest log',
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
  help: 'Free bytes on the disk that holds the data folder',
  role: 'api',
});
export const diskLow = gauge({
  name: 'millrace_disk_low',
  help: '1 while the disk is nearly full and ingest is rejected',
  role: 'api',
});
export const checkOk = gauge({
  name: 'millrace_check_ok',
  help: 'Checks of /readyz, read every few seconds: 1 when NATS or ClickHouse answers, every partition has a live worker, or hard limits can be decided',
  role: 'api',
  labels: ['check'],
});
export const partitionsUnowned = gauge({
  name: 'millrace_partitions_unowned',
  help: 'Partitions of the ingest log that no live worker owns, or whose owner has not started reading them for half a minute',
  role: 'api',
});
export const streamMessages = gauge({
  name: 'millrace_stream_messages',
  help: 'Messages in a NATS stream',
  role: 'api',
  labels: ['stream'],
});
export const streamBytes = gauge({
  name: 'millrace_stream_bytes',
  help: 'Bytes in a NATS stream',
  role: 'api',
  labels: ['stream'],
});
export const streamMaxBytes = gauge({
  name: 'millrace_stream_max_bytes',
  help: 'Maximum bytes of a NATS stream',
  role: 'api',
  labels: ['stream'],
});
export const budgetAccountsUnread = gauge({
  name: 'millrace_budget_accounts_unread',
  help: 'Organizations with a hard limit whose use could not be read from the store; their limits apply to the use that was read before',
  role: 'api',
});
export const budgetLateAnswersTotal = counter({
  name: 'millrace_budget_late_answers_total',
  help: 'Questions about requests near a hard limit that the deciding process did not answer in time; such requests may exceed the limit together',
  role: 'api',
});
export const rateLimitedTotal = counter({
  name: 'millrace_rate_limited_total',
  help: "Requests rejected by an organization's rate limit, its share of the backlog, or its maximum of gateway calls in progress",
  role: 'api',
  labels: ['kind'],
});
export const logPublishSeconds = histogram(
  {
    name: 'millrace_log_publish_seconds',
    help: 'Time from publishing a message to the ingest log to its confirmation',
    role: 'api',
  },
  FAST_SECONDS,
);
export const logPublishEvents = histogram(
  { name: 'millrace_log_publish_events', help: 'Events per message of the ingest log', role: 'api' },
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
  help: 'Events that entered a stage',
  role: 'pipeline',
  labels: ['stage'],
});
export const pipelineEventsEmittedTotal = counter({
  name: 'millrace_pipeline_events_emitted_total',
  help: 'Events that a stage emitted',
  role: 'pipeline',
  labels: ['stage'],
});
export const pipelineEventsDroppedTotal = counter({
  name: 'millrace_pipeline_events_dropped_total',
  help: 'Events that a stage dropped by design',
  role: 'pipeline',
  labels: ['stage', 'reason'],
});
export const pipelineEventsDeadTotal = counter({
  name: 'millrace_pipeline_events_dead_total',
  help: 'Events that were dead-lettered',
  role: 'pipeline',
  labels: ['stage', 'reason'],
});
export const deadLettersLostTotal = counter({
  name: 'millrace_dead_letters_lost_total',
  help: 'Dead letters that were lost because DEAD_LETTERS had no room for them',
  role: 'pipeline',
});
export const pipelineLagMessages = gauge({
  name: 'millrace_pipeline_lag_messages',
  help: 'Messages of the ingest log that have not landed yet',
  role: 'pipeline',
});
export const pipelineLagSeconds = gauge({
  name: 'millrace_pipeline_lag_seconds',
  help: 'Age of the oldest message of the ingest log that has not landed yet',
  role: 'pipeline',
});
export const pipelineBatchSeconds = histogram(
  {
    name: 'millrace_pipeline_batch_seconds',
    help: 'Time of one stage over one batch',
    role: 'pipeline',
    labels: ['stage'],
  },
  SLOW_SECONDS,
);
export const samplingEventsTotal = counter({
  name: 'millrace_sampling_events_total',
  help: 'Events by how much of them is stored (full, summary) and by the reason: a keep rule, the profile, their trace, or a full tail buffer',
  role: 'pipeline',
  labels: ['retain', 'reason'],
});
export const samplingHeldTraces = gauge({
  name: 'millrace_sampling_held_traces',
  help: 'Traces in the tail buffer',
  role: 'pipeline',
});
export const samplingHeldBytes = gauge({
  name: 'millrace_sampling_held_bytes',
  help: 'Estimated memory of the traces in the tail buffer',
  role: 'pipeline',
});
export const pipelineOpenTraces = gauge({
  name: 'millrace_pipeline_open_traces',
  help: 'Open traces: traces that are not complete yet',
  role: 'pipeline',
});
export const pipelinePartitionsOwned = gauge({
  name: 'millrace_pipeline_partitions_owned',
  help: 'Partitions that this worker owns',
  role: 'pipeline',
});
export const pipelineDedupeIds = gauge({
  name: 'millrace_pipeline_dedupe_ids',
  help: 'Event ids in memory that recognize repeated events',
  role: 'pipeline',
});
export const pipelineDedupeBytes = gauge({
  name: 'millrace_pipeline_dedupe_bytes',
  help: 'Memory of what recognizes repeated events: tables of ids, and filters in place of older tables',
  role: 'pipeline',
});
export const pipelineTextsWaiting = gauge({
  name: 'millrace_pipeline_texts_waiting',
  help: 'Texts that have landed and are not indexed for search yet',
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
  help: 'Ended attempts at messages of work queues, by result: done, retried, dead',
  role: 'pipeline',
  labels: ['queue', 'result'],
});

export const jobSeconds = histogram(
  {
    name: 'millrace_job_seconds',
    help: 'Time of a run of a scheduled job, by outcome: done, failed',
    role: 'pipeline',
    labels: ['job', 'outcome'],
  },
  [0.01, 0.1, 1, 10, 60, 300, 600, 1800],
);
export const jobOverdueSeconds = gauge({
  name: 'millrace_job_overdue_seconds',
  help: 'Time for which the newest due slot of a scheduled job has been waiting for a completed run',
  role: 'pipeline',
  labels: ['job'],
});
export const clickhousePartsMax = gauge({
  name: 'millrace_clickhouse_parts_max',
  help: 'Parts of the ClickHouse partition with the most parts; reported by the leader',
  role: 'pipeline',
});
export const clickhouseShardsAway = gauge({
  name: 'millrace_clickhouse_shards_away',
  help: 'Shards of ClickHouse that do not answer the leader',
  role: 'pipeline',
});
export const clickhouseDiskFreeBytes = gauge({
  name: 'millrace_clickhouse_disk_free_bytes',
  help: "Free bytes of ClickHouse's fullest disk, as ClickHouse reports them; reported by the leader",
  role: 'pipeline',
});
export const clickhouseDiskBytes = gauge({
  name: 'millrace_clickhouse_disk_bytes',
  help: "Total bytes of ClickHouse's fullest disk; reported by the leader",
  role: 'pipeline',
});
export const webhookQueuedTotal = counter({
  name: 'millrace_webhook_queued_total',
  help: 'Deliveries enqueued, one per event and endpoint',
  role: 'pipeline',
});
export const webhookDeliveriesTotal = counter({
  name: 'millrace_webhook_deliveries_total',
  help: 'Ended webhook attempts by outcome: delivered, failed, retrying, dead-lettered; dropped with their endpoint; overflown into the dead letters',
  role: 'pipeline',
  labels: ['outcome'],
});
// Exposed as zero from the start, so that a query for increases sees the first one.
for (const outcome of ['dead-lettered', 'overflown']) webhookDeliveriesTotal.inc({ outcome }, 0);
export const webhookAttemptSeconds = histogram(
  { name: 'millrace_webhook_attempt_seconds', help: 'Time of one webhook attempt', role: 'pipeline' },
  SLOW_SECONDS,
);
export const webhookInFlight = gauge({
  name: 'millrace_webhook_in_flight',
  help: 'Webhook attempts in progress',
  role: 'pipeline',
});
export const webhookBacklog = gauge({
  name: 'millrace_webhook_backlog',
  help: 'Waiting deliveries, including those that wait for their next attempt',
  role: 'pipeline',
});
export const webhookLogDroppedTotal = counter({
  name: 'millrace_webhook_log_dropped_total',
  help: 'Rows of the webhook attempt log that were never written',
  role: 'pipeline',
});

export const llmCallsTotal = counter({
  name: 'millrace_llm_calls_total',
  help: 'Attempts of calls to the model upstream, by result',
  role: 'shared',
  labels: ['result'],
});
export const llmCallSeconds = histogram(
  { name: 'millrace_llm_call_seconds', help: 'Time of one attempt of a call to the model upstream', role: 'shared' },
  [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60],
);
export const liveStreams = gauge({
  name: 'millrace_live_streams',
  help: 'Open live streams: connections of GET /v1/live',
  role: 'api',
});
export const gatewayCallsTotal = counter({
  name: 'millrace_gateway_calls_total',
  help: 'Model calls through the gateway, by outcome',
  role: 'api',
  labels: ['operation', 'outcome'],
});
export const gatewayRecordsLostTotal = counter({
  name: 'millrace_gateway_records_lost_total',
  help: 'Gateway calls that were answered and whose record was lost',
  role: 'api',
  labels: ['reason'],
});
for (const reason of ['no_room', 'given_up']) gatewayRecordsLostTotal.inc({ reason }, 0);
export const judgingTokensTotal = counter({
  name: 'millrace_judging_tokens_total',
  help: 'Tokens of the model calls of judges and dataset runs',
  role: 'pipeline',
  labels: ['direction'],
});
export const judgingTasksTotal = counter({
  name: 'millrace_judging_tasks_total',
  help: 'Tasks of LLM judges on live traces, by outcome',
  role: 'pipeline',
  labels: ['outcome'],
});
export const patternJobsTotal = counter({
  name: 'millrace_pattern_jobs_total',
  help: 'Jobs of patterns and rules of organizations in the pattern thread, by outcome: done, late (its deadline passed), refused (the queue was full), failed, spent (its organization had used up its share of time)',
  role: 'shared',
  labels: ['result'],
});
export const evalsRunning = gauge({
  name: 'millrace_evals_running',
  help: 'Evals and dataset runs in progress; reported by the leader',
  role: 'pipeline',
});
export const evalScoresTotal = counter({
  name: 'millrace_eval_scores_total',
  help: 'Scores of evals and dataset runs, by verdict',
  role: 'pipeline',
  labels: ['verdict'],
});

/**
 * Prepares the registry for this process: starts the metrics of the process and of Node, labels
 * every series with `process`, and removes the metrics that only the other kind of process writes,
 * which would show zeros that nobody measured. Call it once, first in a main.
 */
export function startMetrics(role: 'api' | 'pipeline', processLabel: string): void {
  for (const [name, owner] of roleOf) {
    if (owner !== 'shared' && owner !== role) registry.removeSingleMetric(name);
  }
  registry.setDefaultLabels({ process: processLabel });
  collectDefaultMetrics({ register: registry });
}
