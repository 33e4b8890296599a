// The log of tries: rows of webhook_deliveries in ClickHouse, written in batches beside the deliveries. In: one row a try.
// Guarantees: no delivery waits for it; while ClickHouse is away rows wait here, bounded, the oldest making room and being
// counted. A batch whose answer was lost is written again: readers take a row that stands twice for one. What a process has
// not written when it is killed is lost: at most FLUSH_MS of rows while ClickHouse answers.
import type { Logger } from '../../ops/platform/logger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { insertDeliveries } from '../../sql/stores/inserts.ts';
import type { DeliveryOutcome } from '../domain/webhooks/retry.ts';

const ROWS_MAX = 100_000;
const BATCH_ROWS_MAX = 10_000;
const FLUSH_MS = 1000;
const FLUSH_MS_MAX = 30_000;
/** The rows that are left at a stop get this long. */
const STOP_MS = 3000;

/** One try, or the end of a delivery without one. */
export interface DeliveryRow {
  org_id: string;
  target_id: string;
  event_id: string;
  event: string;
  attempt: number;
  outcome: DeliveryOutcome;
  /** 0 where no answer came. */
  status_code: number;
  /** Empty where an answer came. */
  error: string;
  duration_ms: number;
  /** When the try began, milliseconds since the epoch. */
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

  /** Rows that are not written yet. */
  get size(): number {
    return this.#rows.length;
  }

  /** Writes what is left, for a bounded time. */
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
    // Rows that had to make room meanwhile were the first of the batch.
    const through = last === undefined ? -1 : this.#rows.indexOf(last);
    this.#rows.splice(0, through + 1);
  }
}
