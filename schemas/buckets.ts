// The JetStream KV buckets as one table: the shape of the values, how an entry names its organization, and the
// bounds of each bucket. ops/platform/nats/open_log.ts creates the buckets, ops/platform/nats/watch.ts opens them
// by name with the type given here, and pipeline/org_deletion deletes what the table says belongs to an organization.
import type { z } from 'zod';
import { parseAgentRecord } from './records/agent.ts';
import { analystRecord } from './records/analyst.ts';
import { annotationRecord } from './records/annotation.ts';
import { keyRecord } from './records/api_key.ts';
import { budgetRecord, budgetState } from './records/budget.ts';
import { parseAnomalyConfig } from './records/cost_config.ts';
import { parseDataset, parseDatasetPart } from './records/dataset.ts';
import { erasureRequest } from './records/erasure.ts';
import { parseEval } from './records/eval.ts';
import { grantRecord } from './records/grant.ts';
import { parseIncident } from './records/incident.ts';
import { jobRecord } from './records/job.ts';
import { parseLongJob } from './records/job_record.ts';
import { parseJudge } from './records/judge.ts';
import { langfuseFold } from './records/langfuse.ts';
import { loginTicket } from './records/login_ticket.ts';
import { monitorRecord, monitorState } from './records/monitor.ts';
import { parseOrg } from './records/org.ts';
import { parseOrgDeletion } from './records/org_deletion.ts';
import { partitionRecord } from './records/partition.ts';
import { parsePiiRecord } from './records/pii_policy.ts';
import { parsePolicy } from './records/policy.ts';
import { parsePrices } from './records/prices.ts';
import { parsePrompt, promptLabels } from './records/prompt.ts';
import { repricingRecord } from './records/repricing.ts';
import { parseRetention } from './records/retention.ts';
import { viewRecord } from './records/view.ts';
import { deadDelivery, webhookRecord } from './records/webhook.ts';

const GIB = 1024 ** 3;

/**
 * How the entries of a bucket name the organization that they belong to.
 * - key: the first token of the key is the organization, as orgKey writes it.
 * - encoded_key: the first token of the key is the organization, as agentOrgToken writes it.
 * - digest_key: the first token of the key is the digest of the tenant.
 * - field: the record names its organization in org_id; the key does not.
 * - key_or_field: like `key`, and like `field` for records that an older version wrote.
 * - organization: the entry is the record of the organization itself, and is deleted last.
 * - deletion: the entry records the deletion of the organization, and outlives it.
 * - none: the entries belong to no organization.
 */
export type Tenancy =
  'key' | 'encoded_key' | 'digest_key' | 'field' | 'key_or_field' | 'organization' | 'deletion' | 'none';

export interface BucketSpec {
  tenancy: Tenancy;
  /**
   * Turns the text of a value into its record, and throws when the text is none. Unset where one module alone reads
   * and writes the bucket and owns the shape of its values.
   */
  parse?: (text: string) => unknown;
  /** Hours after which an entry expires. Unset: never. */
  ttlHours?: number;
  /** Maximum bytes of the bucket. Unset: unbounded. */
  bytesMax?: number;
  /** A full bucket refuses writes, or evicts its oldest entries. */
  whenFull?: 'refuse' | 'forget';
  /** True: writes do not wait for the disk, and the entries are lost when nats-server ends. */
  inMemory?: boolean;
}

const json =
  <T>(shape: z.ZodType<T>) =>
  (text: string): T =>
    shape.parse(JSON.parse(text));

export const BUCKETS = {
  /** Facts of the cluster that never change after the first start, such as the number of partitions. */
  service: { tenancy: 'none' },
  orgs: { tenancy: 'organization', parse: parseOrg },
  /** Deletions of organizations: those under way, and the newest of each deleted organization id. */
  org_deletions: { tenancy: 'deletion', parse: parseOrgDeletion },
  /** By the SHA-256 of the raw key. Delete markers are kept too: they show that the first key was revoked. */
  api_keys: { tenancy: 'field', parse: json(keyRecord) },
  /** Owner, epoch and checkpoint of each partition. */
  partitions: { tenancy: 'none', parse: json(partitionRecord) },
  /** Locks and answers of requests with an Idempotency-Key, except ingest. */
  idempotency: { tenancy: 'digest_key', ttlHours: 24, bytesMax: GIB, whenFull: 'refuse' },
  /**
   * Outcomes of ingest requests with an Idempotency-Key, about 250 bytes each. The events of an evicted outcome are
   * still deduplicated by their ids.
   */
  ingest_keys: { tenancy: 'digest_key', ttlHours: 24, bytesMax: GIB / 4, whenFull: 'forget' },
  /**
   * Ingest requests with an Idempotency-Key that are under way. The TTL is longer than any request takes, and short
   * enough that a process that died does not block its keys for long.
   */
  ingest_claims: {
    tenancy: 'digest_key',
    ttlHours: 5 / 3600,
    bytesMax: GIB / 64,
    whenFull: 'forget',
    inMemory: true,
  },
  agents: { tenancy: 'encoded_key', parse: parseAgentRecord },
  /**
   * By organization and SHA-256 of the raw token. An entry outlives its token, so that an expired token and an
   * invented one get different errors.
   */
  register_tokens: { tenancy: 'key_or_field', ttlHours: 48 },
  /** Permissions that members have on single resources. */
  grants: { tenancy: 'key', parse: json(grantRecord) },
  /** Each organization's settings for its telemetry. */
  policies: { tenancy: 'key', parse: parsePolicy },
  /** Each organization's own model prices. */
  prices: { tenancy: 'key', parse: parsePrices },
  /** The repricing under way. */
  repricings: { tenancy: 'none', parse: json(repricingRecord) },
  /** Each organization's cost-anomaly threshold. */
  cost_configs: { tenancy: 'key', parse: parseAnomalyConfig },
  /** Limits and alert settings of each organization. */
  budgets: { tenancy: 'key', parse: json(budgetRecord) },
  /** Alerts that each organization's budget has sent in its periods, and the limits that it has reached. */
  budget_states: { tenancy: 'key', parse: json(budgetState) },
  /** Webhook endpoints, by organization and id. */
  webhooks: { tenancy: 'key', parse: json(webhookRecord) },
  /** Deliveries that were dead-lettered, by organization, receiver and event. */
  webhook_dead_letters: {
    tenancy: 'key',
    parse: json(deadDelivery),
    ttlHours: 720,
    bytesMax: GIB,
    whenFull: 'forget',
  },
  /** Incidents that are open, or resolved and not yet announced, by organization and cluster. */
  incidents: { tenancy: 'key', parse: parseIncident },
  /** Newest version of each judge, by organization and id. */
  judges: { tenancy: 'key', parse: parseJudge },
  /** Older versions of judges, by organization, id and version; read one at a time. */
  judge_versions: { tenancy: 'key', parse: parseJudge },
  /** When each LLM judge last judged a live trace of each agent. */
  judging_marks: { tenancy: 'key', ttlHours: 720 },
  /** Number of LLM-judge calls of each organization in its period. */
  judge_quotas: { tenancy: 'key' },
  /**
   * Upstream answers to judges, by organization and call, until the call is recorded as a span. A redelivered task
   * finds its answer here and does not call again.
   */
  judging_answers: { tenancy: 'key', ttlHours: 24, bytesMax: GIB / 4, whenFull: 'forget' },
  /** Evals and dataset runs: their request, progress and result. */
  evals: { tenancy: 'key', parse: parseEval },
  /** Trace ids in parts, judge and prompt of each running eval. */
  eval_chunks: { tenancy: 'key', ttlHours: 720 },
  /** Name, version and size of each dataset, by organization and id. */
  datasets: { tenancy: 'key', parse: parseDataset },
  /** The items of a dataset, by organization, id and part; read one part at a time. */
  dataset_items: { tenancy: 'key', parse: parseDatasetPart },
  /** Prompt templates, by organization, name and version. */
  prompts: { tenancy: 'key', parse: parsePrompt },
  /** Labels and tags of each prompt, by organization and name. */
  prompt_labels: { tenancy: 'key', parse: json(promptLabels) },
  /**
   * Up to where the events of each trace of Langfuse's older protocol are folded, and what they became. An update
   * whose entry was evicted becomes a span of its own.
   */
  langfuse_folds: {
    tenancy: 'key',
    parse: json(langfuseFold),
    ttlHours: 24,
    bytesMax: GIB / 8,
    whenFull: 'forget',
  },
  /** Saved views, by organization and id. */
  views: { tenancy: 'key', parse: json(viewRecord) },
  /**
   * Annotation queues and their items. Both share a bucket, so that every process sees a queue before its items and
   * its deletion after it.
   */
  annotations: { tenancy: 'key', parse: json(annotationRecord), bytesMax: GIB / 4, whenFull: 'refuse' },
  /** Monitors, by organization and id. */
  monitors: { tenancy: 'key', parse: json(monitorRecord) },
  /** State of each monitor, and its notices that are not known to be sent. */
  monitor_states: { tenancy: 'key', parse: json(monitorState) },
  /** Redaction rules that apply to each organization's telemetry before it is stored. */
  pii_policies: { tenancy: 'key', parse: parsePiiRecord },
  /** Retention periods of each organization. */
  retention_policies: { tenancy: 'key', parse: parseRetention },
  /** Long jobs (restore, erase) with their progress, by organization and id. */
  job_records: { tenancy: 'key', parse: parseLongJob, ttlHours: 2160 },
  /** Values whose data is to be erased, sealed, until the erasure is done or the entry expires. */
  erase_asks: { tenancy: 'key', parse: json(erasureRequest), ttlHours: 168 },
  /** Analysts of organizations, by user name. */
  analysts: { tenancy: 'field', parse: json(analystRecord) },
  /** Login tickets of a local service that have not been used, by their SHA-256. */
  login_tickets: {
    tenancy: 'none',
    parse: json(loginTicket),
    ttlHours: 1 / 6,
    bytesMax: GIB / 1024,
    whenFull: 'forget',
  },
  /** Lease and last run of each scheduled job. */
  jobs: { tenancy: 'none', parse: json(jobRecord) },
} as const satisfies Record<string, BucketSpec>;

export type BucketName = keyof typeof BUCKETS;

/** A bucket whose values all have one declared shape. */
export type RecordBucket = {
  [N in BucketName]: (typeof BUCKETS)[N] extends { parse: unknown } ? N : never;
}[BucketName];

/** The record that a bucket holds under each key. */
export type RecordOf<N extends RecordBucket> = ReturnType<(typeof BUCKETS)[N]['parse']>;
