// Lands the rows of one batch in their tables, each exactly once, in spite of lost answers and
// crashes.
//
// It takes rows by table, and resolves once every row is in its table or refused because of its
// contents. A refused row is returned alone; all other rows land. While the store is unavailable,
// it retries with backoff for as long as this worker owns the partitions.
import type { Logger } from '../../ops/platform/logger.ts';
import type { Priority } from '../../sql/client/client.ts';
import type { PartitionEpoch } from './fences.ts';
import type { LandingTable, TableSpec } from '../../sql/stores/landing_tables.ts';
import { JUDGE_SCORES, SPANS, SPAN_TEXTS, TRACES, USAGE_EVENTS } from '../../sql/stores/landing_tables.ts';
import { backoffMs } from '../queues/backoff.ts';
import { type LandingBlock, rowsOf } from './landing_block.ts';
import type { LandingRow } from './landing_row.ts';
import { type LandingPiece, pieceOfRows, piecesOf } from './landing_piece.ts';

/** The rows of a landing: by table, and those that are encoded. */
export type LandingUnit = Record<LandingTable, LandingRow[]> & { blocks: LandingBlock[] };

export interface RefusedRow {
  row: LandingRow;
  table: LandingTable;
  detail: string;
}

/**
 * Why a statement failed: the store did not answer, or its rows are at fault, or it has rows of a partition
 * that has a newer owner (then it wrote none, and neither does one that was given up).
 */
export type StoreFailure = 'unavailable' | 'refused' | 'fenced';

/** The store as landing needs it. */
export interface LandingStore {
  /**
   * Writes all rows, unless it fails.
   * @param priority of the statement in the engine; usual if absent
   */
  insert(
    spec: TableSpec,
    piece: LandingPiece,
    owned: readonly PartitionEpoch[],
    queryId: string,
    priority?: Priority,
  ): Promise<void>;
  /**
   * Ends a statement that may still run, or may not have begun. Once it resolves, the statement
   * writes nothing more.
   */
  end(queryId: string): Promise<void>;
  /** Returns the keys of the rows of a partition that are in a table, from a log position on. */
  landedKeys(table: LandingTable, partition: number, fromSeq: number): Promise<ReadonlySet<string>>;
  /**
   * Writes the trace_lookup rows again for the spans of a partition, from a log position on. A
   * repeated row changes nothing.
   */
  repairLookup(partition: number, fromSeq: number): Promise<void>;
  /** Returns the partitions of those pairs whose epoch is no longer the newest. */
  fencedOff(owned: readonly PartitionEpoch[]): Promise<number[]>;
  classify(error: unknown): StoreFailure;
}

export interface LandingOptions {
  store: LandingStore;
  workerId: string;
  logger: Logger;
  /** Returns the partitions that this worker owns now, with their epochs. */
  owned(): readonly PartitionEpoch[];
  /** Called for a partition that has a newer owner. */
  onFenced(partition: number): void;
  observe(table: LandingTable, rows: number, seconds: number): void;
}

/**
 * Tables by step. Steps run one after the other, so that readers find whole data: a listed trace
 * has its spans, and a span has its texts and its share of the costs. The tables of one step land
 * in parallel. Scores land with their trace; if the trace landed without them, a new owner would
 * judge it again.
 */
const STEPS: readonly (readonly TableSpec[])[] = [[SPAN_TEXTS, USAGE_EVENTS], [SPANS], [TRACES, JUDGE_SCORES]];

export function emptyUnit(): LandingUnit {
  return { spans: [], span_texts_recent: [], traces: [], usage_events: [], judge_scores: [], blocks: [] };
}

/** Returns all rows of a table one by one. */
export const unitRows = (unit: LandingUnit, table: LandingTable): LandingRow[] => [
  ...unit.blocks.filter(({ spec }) => spec.table === table).flatMap(rowsOf),
  ...unit[table],
];

export class Lander {
  readonly #options: LandingOptions;
  #statements = 0;

  constructor(options: LandingOptions) {
    this.#options = options;
  }

  /**
   * Lands a unit, in STEPS, and returns the refused rows.
   * @param priority of its statements in the engine
   */
  async land(unit: LandingUnit, priority: Priority = 'usual'): Promise<RefusedRow[]> {
    const refused: RefusedRow[][] = [];
    for (const specs of STEPS)
      refused.push(...(await Promise.all(specs.map((spec) => this.#landTable(spec, unit, priority)))));
    return refused.flat();
  }

  async #landTable(spec: TableSpec, unit: LandingUnit, priority: Priority): Promise<RefusedRow[]> {
    const refused: RefusedRow[] = [];
    // A stack of pieces. A refused piece is halved until the row that causes the refusal stands
    // alone.
    const blocks = unit.blocks.filter((block) => block.spec.table === spec.table);
    const pieces = piecesOf(spec, blocks, unit[spec.table]).reverse();
    for (let piece = pieces.pop(); piece !== undefined; piece = pieces.pop()) {
      const error = await this.#insertOwned(spec, piece, priority);
      if (error === null) continue;
      const rows = piece.rows();
      const [only] = rows;
      if (rows.length === 1 && only !== undefined) {
        refused.push({ row: only, table: spec.table, detail: error });
        continue;
      }
      const middle = Math.ceil(rows.length / 2);
      pieces.push(pieceOfRows(spec, rows.slice(middle)), pieceOfRows(spec, rows.slice(0, middle)));
    }
    return refused;
  }

  /**
   * @returns null if all rows are in the table or belong to other owners, otherwise why the store
   * refuses them
   */
  async #insertOwned(spec: TableSpec, piece: LandingPiece, priority: Priority): Promise<string | null> {
    let left = piece;
    for (let attempt = 0; ; attempt += 1) {
      const owned = this.#options.owned();
      left = left.ownedBy(owned);
      if (left.count === 0) return null;
      this.#statements += 1;
      const queryId = `land-${this.#options.workerId}-${spec.table}-${this.#statements}`;
      const began = performance.now();
      try {
        await this.#options.store.insert(spec, left, owned, queryId, priority);
        this.#options.observe(spec.table, left.count, (performance.now() - began) / 1000);
        return null;
      } catch (error) {
        const failure = this.#options.store.classify(error);
        if (failure === 'refused') return error instanceof Error ? error.message : String(error);
        this.#options.logger.warn(
          { err: error, table: spec.table, rows: left.count, attempt },
          'landing failed; trying again',
        );
        if (failure === 'fenced') {
          await this.#dropFenced(owned);
          if (left.ownedBy(this.#options.owned()).count === 0) return null;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt)));
      left = pieceOfRows(spec, await this.#withoutLanded(spec, left, queryId, attempt));
    }
  }

  /**
   * Returns the rows that are not in the table. The statement may have worked although its answer
   * was lost, so only these are sent again.
   */
  async #withoutLanded(spec: TableSpec, piece: LandingPiece, queryId: string, attempt: number): Promise<LandingRow[]> {
    const { table } = spec;
    const rows = piece.rows();
    for (let tries = attempt; ; tries += 1) {
      try {
        await this.#options.store.end(queryId);
        const from = new Map<number, number>();
        for (const row of rows) from.set(row.partition, Math.min(row.log_seq, from.get(row.partition) ?? Infinity));
        const landed = new Map(
          await Promise.all(
            [...from].map(
              async ([partition, seq]) =>
                [partition, await this.#options.store.landedKeys(table, partition, seq)] as const,
            ),
          ),
        );
        const left = rows.filter((row) => landed.get(row.partition)?.has(row.key) !== true);
        // An interrupted insert may have written its spans without the rows of the materialized
        // view.
        if (table === 'spans' && left.length < rows.length)
          await Promise.all([...from].map(([partition, seq]) => this.#options.store.repairLookup(partition, seq)));
        return left;
      } catch (error) {
        if (piece.ownedBy(this.#options.owned()).count === 0) return [];
        this.#options.logger.warn({ err: error, table }, 'the store does not answer what has landed; asking again');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(tries)));
      }
    }
  }

  /** Drops the partitions that have a newer owner. If the store does not say which, the next attempt asks again. */
  async #dropFenced(owned: readonly PartitionEpoch[]): Promise<void> {
    try {
      for (const partition of await this.#options.store.fencedOff(owned)) this.#options.onFenced(partition);
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'the store does not answer which partitions have a newer owner');
    }
  }
}
