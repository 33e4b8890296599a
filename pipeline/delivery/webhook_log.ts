// Writes the log of webhook attempts: rows of webhook_deliveries in ClickHouse, in batches, one row
// for each attempt. Guarantees: no delivery waits for a row. While ClickHouse is unavailable rows
// wait in memory, bounded by ROWS_MAX; above it the oldest are dropped and counted. A batch whose
// answer was lost is written again, and readers merge the duplicates. A process that is killed
// loses the rows that it has not written: at most FLUSH_MS of them while ClickHouse answers.
import type { Logger } from '../../ops/platform/logger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { insertDeliveries } from '../../sql/stores/inserts.ts';
import type { DeliveryOutcome } from '../domain/webhooks/retry.ts';

const ROWS_MAX = 100_000;
const BATCH_ROWS_MAX = 10_000;
const FLUSH_MS = 1000;
const FLUSH_MS_MAX = 30_000;
/** Time on shutdown for the rows that remain. */
const STOP_MS = 3000;

/** One attempt, or the end of a delivery without an attempt. */
export interface DeliveryRow {
  org_id: string;
  target_id: string;
  event_id: string;
  event: string;
  attempt: number;
  outcome: DeliveryOutcome;
  /** HTTP status; 0 when no answer came. */
  status_code: number;
  /** Reason why no answer came; empty when one did. */
  error: string;
  duration_ms: number;
  /** Start of the attempt, milliseconds since the epoch. */
  at: number;
}

export interface WebhookLogOptions {
  clickhouse: Pick<ClickHouse, 'execute'>;
  logger: Logger;
  onDropped: (rows: number) => void;
  flushMs?: number;
  rowsMax?: number;
}

export class WebhookLog {
  readonly #options: WebhookLogOptions;
  readonly #flushMs: number;
  readonly #rowsMax: number;
  #rows: string[] = [];
  #failures = 0;
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> | null = null;
  #stopped = false;

  constructor(options: WebhookLogOptions) {
    this.#options = options;
    this.#flushMs = options.flushMs ?? FLUSH_MS;
    this.#rowsMax = options.rowsMax ?? ROWS_MAX;
  }

  add(row: DeliveryRow): void {
    this.#rows.push(JSON.stringify({ ...row, at: new Date(row.at).toISOString() }));
    const surplus = this.#rows.length - this.#rowsMax;
    if (surplus > 0) {
      this.#rows.splice(0, surplus);
      this.#options.onDropped(surplus);
    }
    this.#schedule();
  }

  /** Number of rows that are not written yet. */
  get size(): number {
    return this.#rows.length;
  }

  /** Writes the remaining rows, within STOP_MS. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const rest = async () => {
      await this.#writing;
      if (this.#rows.length > 0) await this.#write();
    };
    await Promise.race([rest(), new Promise((resolve) => setTimeout(resolve, STOP_MS).unref())]);
    if (this.#rows.length > 0) this.#options.onDropped(this.#rows.length);
  }

  #schedule(): void {
    if (this.#timer !== null || this.#writing !== null || this.#stopped) return;
    const wait = Math.min(FLUSH_MS_MAX, this.#flushMs * 2 ** Math.min(this.#failures, 10));
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#writing = this.#write().finally(() => {
        this.#writing = null;
        if (this.#rows.length > 0) this.#schedule();
      });
    }, wait);
  }

  async #write(): Promise<void> {
    const batch = this.#rows.slice(0, BATCH_ROWS_MAX);
    const last = batch.at(-1);
    try {
      await insertDeliveries(this.#options.clickhouse, batch);
      this.#failures = 0;
    } catch (error) {
      if (this.#failures === 0)
        this.#options.logger.warn({ err: error, rows: this.#rows.length }, 'the log of webhooks waits for ClickHouse');
      this.#failures += 1;
      return;
    }
    // Rows that were dropped in the meantime were the first of the batch.
    const through = last === undefined ? -1 : this.#rows.indexOf(last);
    this.#rows.splice(0, through + 1);
  }
}
