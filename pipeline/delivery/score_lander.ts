// Lands the scores that people and applications give. It takes messages of the queue SCORES and
// writes their rows to ClickHouse. Guarantees: a score leaves the queue only after its row is on
// disk; a batch that lands twice changes nothing, as the store merges rows of one key; personal
// data is redacted by the organization's policy, as in spans. The queue consumer bounds messages
// and bytes.
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { SCORES_STREAM } from '../../schemas/streams.ts';
import { type UserScore, userScoreCodec } from '../../schemas/codec.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { storeTime } from '../../sql/client/store_time.ts';
import type { PiiRedactor } from '../domain/pii/pii.ts';
import { createDeadLetterStore } from '../queues/dead_letters.ts';
import { landRows } from './land_rows.ts';
import { BatchConsumer, type BatchConsumerOptions } from '../queues/batch_consumer.ts';

const QUEUE = 'scores';
const BATCH_MAX = 500;
/** Maximum bytes held: 500 messages of 64 KiB, the largest that the stream accepts. */
const HELD_BYTES_MAX = 32 * 1024 * 1024;
/**
 * A score becomes visible soon after the request is answered, and a script's thousand scores still
 * make few parts.
 */
const GATHER_MS = 100;
const ACK_PENDING_MAX = 2000;
const RETRY = { firstMs: 200, maxMs: 5000 };
const ACK_WAIT_MS = 20_000;

const COLUMNS = [
  'org_id',
  'name',
  'started_at',
  'trace_id',
  'score_id',
  'span_id',
  'data_type',
  'number',
  'text',
  'comment',
  'author_type',
  'author_id',
  'created_at',
] as const;

export interface ScoreLanderOptions {
  log: Log;
  logger: Logger;
  clickhouse: ClickHouse;
  /** Returns the redactor of an organization; null when it redacts nothing. */
  redactorOf: (org_id: string) => PiiRedactor | null;
  /** Milliseconds since the epoch. */
  now: () => number;
  observe: BatchConsumerOptions<UserScore>['observe'];
  onLanded: (rows: number, seconds: number) => void;
  /** Resolves when the tables exist; unset where they exist already. */
  storeUp?: Promise<unknown> | undefined;
}

/** Returns the score lander of one worker. Any number of workers share the queue. */
export function createScoreLander(options: ScoreLanderOptions): BatchConsumer<UserScore> {
  const { log, logger, clickhouse, redactorOf, now, observe, onLanded, storeUp } = options;
  return new BatchConsumer({
    log,
    logger,
    queue: QUEUE,
    stream: SCORES_STREAM,
    codec: userScoreCodec,
    handle: async (batch) => {
      const rows: ReturnType<typeof scoreRow>[] = [];
      for (const { value } of batch) rows.push(scoreRow(await redacted(value, redactorOf(value.org_id))));
      await landRows(clickhouse, { table: 'user_scores', columns: COLUMNS, rows, onLanded, storeUp });
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

/** Redacts the fields that people write: name, category and comment. */
async function redacted(score: UserScore, redactor: PiiRedactor | null): Promise<UserScore> {
  if (redactor === null) return score;
  const { name, text, comment } = score;
  return redactor.redact((redaction) => ({
    ...score,
    name: redaction.text(name),
    text: redaction.text(text),
    comment: redaction.text(comment),
  }));
}

/** Returns the row of user_scores for a score, by column. */
function scoreRow({
  trace_started_at,
  created_at,
  ...rest
}: UserScore): Record<(typeof COLUMNS)[number], string | number | null> {
  return { ...rest, started_at: storeTime(trace_started_at), created_at: storeTime(created_at) };
}
