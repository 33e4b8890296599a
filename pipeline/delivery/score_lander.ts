// Lands scores that people and applications gave: from the queue SCORES into ClickHouse. Guarantees: nothing leaves the queue before its row
// is on the disk; a batch that lands twice changes nothing, as rows of one key are one; what the org has redacted is redacted here, as in spans.
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
/** Bounded by what the stream takes as a message: 500 of 64 KiB. */
const HELD_BYTES_MAX = 32 * 1024 * 1024;
/** A score is to be seen about as soon as it is answered; a script's thousand make few parts. */
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
  /** What an org has redacted; null for nothing. */
  redactorOf: (org_id: string) => PiiRedactor | null;
  /** Milliseconds since the epoch. */
  now: () => number;
  observe: BatchConsumerOptions<UserScore>['observe'];
  onLanded: (rows: number, seconds: number) => void;
  /** Resolves when the tables exist; unset where they do. */
  storeUp?: Promise<unknown> | undefined;
}

/** The lander of one worker; any number of them share the queue. */
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

/** What people write: the name, the category and the comment. */
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

/** A row of user_scores, by column. */
function scoreRow({
  trace_started_at,
  created_at,
  ...rest
}: UserScore): Record<(typeof COLUMNS)[number], string | number | null> {
  return { ...rest, started_at: storeTime(trace_started_at), created_at: storeTime(created_at) };
}
