// The landings of a worker's batches, in their order. A batch lands in the express lane at once. The rows
// of organizations that would hold it up land beside it in the bulk lane (landing/landing_lanes.ts), while
// further batches land in the express lane.
//
// A batch is settled once both lanes have landed its rows, what follows from them is published, and the
// batches before it are settled. Only then do its positions count, so a checkpoint covers nothing that
// waits in a lane. Usage lands in the express lane, in log order: one position says how much has landed.
import { wireText } from '../../sql/stores/landing_tables.ts';
import { BulkLane } from '../landing/bulk_lane.ts';
import type { Lander, RefusedRow } from '../landing/lander.ts';
import type { LandingLanes } from '../landing/landing_lanes.ts';
import { LIMITS } from '../limits.ts';
import type { Ownership } from './ownership.ts';
import type { DeadLetterEntry, Prepared } from './prepare.ts';
import type { Publisher } from './publish.ts';

export interface LandingsDeps {
  lander: Pick<Lander, 'land'>;
  ownership: Pick<Ownership, 'isOwner'>;
  publisher: Pick<Publisher, 'publishEvents' | 'enqueueTasks' | 'deadLetter'>;
  /** The lanes by which the batches were prepared; null if all rows land in the express lane. */
  lanes: Pick<LandingLanes, 'landed'> | null;
  /**
   * Reports what has landed to the keeper of budgets and to the API processes. Nothing waits for
   * it.
   */
  reportLanded(prepared: Landed): void;
  /** Milliseconds of a monotonic clock; performance.now if absent. */
  now?: () => number;
  /** Resolves after some milliseconds; a timer if absent. */
  sleep?: (ms: number) => Promise<void>;
}

type Landed = Pick<Prepared, 'usage' | 'progress' | 'replaces'>;

/** What a batch waits for until it is settled. */
interface Steps {
  before: Promise<void>;
  /** The landings of the batch, in both lanes or one. */
  rows: readonly Promise<unknown>[];
  /** The same, with what is published afterwards. */
  done: readonly Promise<void>[];
  bytes: number;
}

export class Landings {
  readonly #deps: LandingsDeps;
  readonly #bulk: BulkLane;
  #express: Promise<void> = Promise.resolve();
  #settled: Promise<void> = Promise.resolve();
  /** Bytes of the batches that are not settled. */
  #bytes = 0;
  /** Called when a batch is settled. */
  #wanted: (() => void)[] = [];
  /** When the last landing in the express lane began, on the monotonic clock, and how long it took. Milliseconds. */
  beganAt = 0;
  tookMs = 0;

  constructor(deps: LandingsDeps) {
    this.#deps = deps;
    this.#bulk = new BulkLane({
      lander: deps.lander,
      now: deps.now ?? (() => performance.now()),
      sleep: deps.sleep ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms))),
    });
  }

  /** Resolves once every batch that was added is settled. Rejects if one cannot be. */
  get settled(): Promise<void> {
    return this.#settled;
  }

  /** Runs a function once every batch that was added is settled. */
  afterwards(run: () => void): void {
    this.#settled = this.#settled.then(run);
  }

  /**
   * Adds a batch. Resolves once its landing in the express lane has begun: after that of the batch
   * before, and once the batches that are not settled have less than LIMITS.unsettled_bytes_max.
   * @param bytes what the batch keeps in memory
   */
  async add(prepared: Prepared, bytes: number): Promise<void> {
    await this.#express;
    if (this.#bulk.isEmpty) await this.#settled;
    while (this.#bytes >= LIMITS.unsettled_bytes_max) await this.#anySettled();
    this.#bytes += bytes;
    this.beganAt = performance.now();
    const { bulk } = prepared;
    const isSplit = bulk !== null || !this.#bulk.isEmpty;
    const rows = this.#deps.lander.land(prepared.rows, isSplit ? 'ahead' : 'usual');
    const express = this.#follow(rows, prepared, false).then(() => {
      this.tookMs = performance.now() - this.beganAt;
    });
    const bulkRows = bulk === null ? [] : [rows.then(() => this.#bulk.land(bulk.rows, Math.max(1, bytes)))];
    const bulkDone = bulkRows.map((landing) => this.#follow(landing, prepared, true));
    // Failures reach the worker through `settled`; without this they would also count as unhandled.
    for (const step of [express, ...bulkRows, ...bulkDone]) step.catch(() => undefined);
    this.#express = express;
    this.#settled = this.#settle(
      { usage: prepared.usage, progress: prepared.progress, replaces: prepared.replaces },
      { before: this.#settled, rows: [rows, ...bulkRows], done: [express, ...bulkDone], bytes },
    );
  }

  async #anySettled(): Promise<void> {
    await Promise.race([
      this.#settled,
      new Promise<void>((resolve) => {
        this.#wanted.push(resolve);
      }),
    ]);
  }

  /** Publishes what follows from the rows of a batch in one lane, once they have landed. */
  async #follow(rows: Promise<RefusedRow[]>, prepared: Prepared, isBulk: boolean): Promise<void> {
    const { ownership, publisher } = this.#deps;
    const refused = await rows;
    const orgs = prepared.bulk?.orgs ?? new Set<string>();
    const deadLetters = [...(isBulk ? [] : prepared.deadLetters), ...refused.map(letterOf)];
    if (deadLetters.length > 0) await publisher.deadLetter(deadLetters);
    const isOwn = (item: { partition: number }, org_id: string): boolean =>
      ownership.isOwner(item.partition) && orgs.has(org_id) === isBulk;
    const events = prepared.events.filter((event) => isOwn(event, event.org_id));
    if (events.length > 0) await publisher.publishEvents(events);
    const tasks = prepared.tasks.filter((item) => isOwn(item, item.task.org_id)).map(({ task }) => task);
    if (tasks.length > 0) await publisher.enqueueTasks(tasks);
    // Only now, so that what the organization sends next is published afterwards, whichever lane it takes.
    if (isBulk) this.#deps.lanes?.landed(orgs);
  }

  /** Settles a batch. It keeps no rows, which may be large. */
  async #settle(landed: Landed, { before, rows, done, bytes }: Steps): Promise<void> {
    await Promise.all([before, ...rows]);
    this.#deps.reportLanded(landed);
    await Promise.all(done);
    for (const { state, landed_through, settled_through, completed_through, heard_at } of landed.progress) {
      state.landed_through = landed_through;
      state.settled_through = settled_through;
      state.completed_through = completed_through;
      state.landed_at = heard_at;
    }
    this.#bytes -= bytes;
    for (const resolve of this.#wanted.splice(0)) resolve();
  }
}

const letterOf = ({ row, table, detail }: RefusedRow): DeadLetterEntry => ({
  dead: {
    step: 'land',
    reason: 'refused_by_store',
    detail: `${table}: ${detail}`,
    position: row.event ?? { partition: row.partition, log_seq: row.log_seq, log_index: -1 },
  },
  event: row.event,
  raw: Buffer.from(wireText(row.wire)),
});
