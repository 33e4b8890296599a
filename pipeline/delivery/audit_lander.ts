// Lands the audit log. It takes entries of the queue AUDIT, the intents and outcomes of mutations,
// writes their rows to ClickHouse, and publishes the platform events that some mutations lead to.
// Guarantees: an entry leaves the queue only after its row is on disk; a batch that lands twice
// changes nothing, as the store merges rows of one key and version. Events do not wait for
// ClickHouse; an event that is published twice has the same id. The queue consumer bounds messages
// and bytes.
import type { Logger } from '../../ops/platform/logger.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { AUDIT_STREAM, EVENTS_SUBJECT } from '../../schemas/streams.ts';
import { type AuditEntry, auditEntryCodec, type ServiceEvent, serviceEventsCodec } from '../../schemas/codec.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { storeTime } from '../../sql/client/store_time.ts';
import { eventOfMutation } from '../domain/webhooks/audit_events.ts';
import { createDeadLetterStore } from '../queues/dead_letters.ts';
import { landRows } from './land_rows.ts';
import { BatchConsumer, type BatchConsumerOptions, PermanentFailure } from '../queues/batch_consumer.ts';
import type { Delivery } from '../queues/queue_consumer.ts';

/**
 * Days that a record is kept unless the organization's retention policy says otherwise: seven
 * years.
 */
export const AUDIT_DAYS = 2555;

const QUEUE = 'audit';
const BATCH_MAX = 500;
/** Maximum bytes held: 500 messages of 64 KiB, the largest that the stream accepts. */
const HELD_BYTES_MAX = 32 * 1024 * 1024;
/**
 * A record becomes visible soon after its mutation is answered, and a script's hundred mutations
 * still make few parts.
 */
const GATHER_MS = 100;
/**
 * Maximum number of entries of all workers together that wait for a retry while ClickHouse is
 * unavailable; the rest waits in the stream.
 */
const ACK_PENDING_MAX = 2000;
/**
 * ClickHouse is retried at least every five seconds, so that entries become visible soon after it
 * is back.
 */
const RETRY = { firstMs: 200, maxMs: 5000 };
/** Another worker lands the entries of one that died after this long. */
const ACK_WAIT_MS = 20_000;
const PUBLISH_TIMEOUT_MS = 3000;
/**
 * Maximum number of remembered events whose rows wait for ClickHouse; a retry does not publish them
 * again.
 */
const PUBLISHED_MAX = 10_000;
const DAY_MS = 86_400_000;

const COLUMNS = [
  'org_id',
  'created_at',
  'audit_id',
  'outcome',
  'actor_type',
  'actor_id',
  'action',
  'target_type',
  'target_id',
  'changes',
  'request_id',
  'ip',
  'delete_on',
  'version',
] as const;

export interface AuditLanderOptions {
  log: Log;
  logger: Logger;
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
  observe: BatchConsumerOptions<AuditEntry>['observe'];
  onLanded: (rows: number, seconds: number) => void;
  /** Resolves when the tables exist; unset where they exist already. */
  storeUp?: Promise<unknown> | undefined;
  onPublished: (event: string) => void;
}

/** Returns the audit lander of one worker. Any number of workers share the queue. */
export function createAuditLander(options: AuditLanderOptions): BatchConsumer<AuditEntry> {
  const { log, logger, now, observe } = options;
  const published = new Set<string>();
  return new BatchConsumer({
    log,
    logger,
    queue: QUEUE,
    stream: AUDIT_STREAM,
    codec: auditEntryCodec,
    handle: async (batch) => {
      await publishEvents(batch, published, options);
      await landRows(options.clickhouse, {
        table: 'audit_log',
        columns: COLUMNS,
        rows: batch.map(({ value }) => auditRow(value)),
        onLanded: options.onLanded,
        storeUp: options.storeUp,
      });
      for (const { value } of batch) published.delete(value.audit_id);
    },
    deadLetter: createDeadLetterStore(log, now),
    observe,
    messagesMax: BATCH_MAX,
    bytesMax: HELD_BYTES_MAX,
    batchMax: BATCH_MAX,
    gatherMs: GATHER_MS,
    handlersMax: 1,
    ackPendingMax: ACK_PENDING_MAX,
    retry: RETRY,
    ackWaitMs: ACK_WAIT_MS,
    now,
  });
}

async function publishEvents(
  batch: readonly Delivery<AuditEntry>[],
  published: Set<string>,
  { log, onPublished }: AuditLanderOptions,
): Promise<void> {
  for (const { value } of batch) {
    const event = published.has(value.audit_id) ? null : eventOf(value);
    if (event === null) continue;
    const options = { msgID: event.event_id, timeoutMs: PUBLISH_TIMEOUT_MS };
    await publishRecord(log, EVENTS_SUBJECT, serviceEventsCodec, { events: [event] }, options);
    onPublished(event.event);
    published.add(value.audit_id);
    const [oldest] = published;
    if (published.size > PUBLISHED_MAX && oldest !== undefined) published.delete(oldest);
  }
}

function eventOf(entry: AuditEntry): ServiceEvent | null {
  if (entry.phase !== 'done') return null;
  return eventOfMutation({
    audit_id: entry.audit_id,
    org_id: entry.org_id,
    actor: { type: entry.actor_type, id: entry.actor_id },
    action: entry.action,
    target: { type: entry.target_type, id: entry.target_id },
    changes: changesOf(entry),
    created_at: entry.created_at,
  });
}

function changesOf({ audit_id, changes }: AuditEntry): Record<string, unknown> {
  try {
    return JSON.parse(changes) as Record<string, unknown>;
  } catch (cause) {
    throw new PermanentFailure(`the changes of ${audit_id} are not JSON`, { cause });
  }
}

/** Returns the row of audit_log for an entry, by column. */
export function auditRow(entry: AuditEntry): Record<(typeof COLUMNS)[number], string | number> {
  return {
    org_id: entry.org_id,
    created_at: storeTime(entry.created_at),
    audit_id: entry.audit_id,
    outcome: entry.phase === 'intent' ? 'unknown' : entry.phase,
    actor_type: entry.actor_type,
    actor_id: entry.actor_id,
    action: entry.action,
    target_type: entry.target_type,
    target_id: entry.target_id,
    changes: entry.changes,
    request_id: entry.request_id,
    ip: entry.ip,
    delete_on: storeTime(entry.created_at + AUDIT_DAYS * DAY_MS).slice(0, 10),
    version: entry.phase === 'intent' ? 1 : 2,
  };
}
