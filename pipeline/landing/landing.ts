// One landing: the rows of one batch into their tables, each exactly once, in spite of lost answers and crashes.
// In: a unit (rows by table). Out: resolves when every row is in its table or refused for what it is; a refused row is
// handed back alone, its neighbours land. While the store is away it tries again with backoff, for as long as it owns
// the partitions.
import type { Logger } from '../../ops/platform/logger.ts';
import type { LoggedEvent } from '../stage.ts';
import type { LandingTable, TableSpec } from '../../sql/stores/landing_tables.ts';
import { JUDGE_SCORES, SPANS, SPAN_TEXTS, TRACES, USAGE_EVENTS } from '../../sql/stores/landing_tables.ts';
import { LIMITS } from '../topology.ts';
import { backoffMs } from '../queues/backoff.ts';

export interface LandingRow {
  line: string;
  partition: number;
  /** Epoch under which the row was made: a worker that lost the partition and has it again must not write what it made before. */
  epoch: number;
  log_seq: number;
  /** Tells the row apart within its table, see landingKey. */
  key: string;
  /** The event it came from; null where many share the row. */
  event: LoggedEvent | null;
}

export type LandingUnit = Record<LandingTable, LandingRow[]>;

export interface RefusedRow {
  row: LandingRow;
  table: LandingTable;
  detail: string;
}

/** What landing needs of the store. */
export interface LandingStore {
  /** @returns rows written; fewer than sent when a partition is fenced off */
  insert(
    spec: TableSpec,
    lines: readonly string[],
    owned: readonly (readonly [number, number])[],
    queryId: string,
  ): Promise<number>;
  /** Ends a statement that may still run, or may not have begun; once it resolves the statement writes nothing any more. */
  end(queryId: string): Promise<void>;
  /** Keys of the rows of a partition that are in a table from a log position on. */
  landedKeys(table: LandingTable, partition: number, fromSeq: number): Promise<ReadonlySet<string>>;
  /** Writes what finds a trace by its id once more, for the spans of a partition from a log position on. Written twice changes nothing. */
  mendLookup(partition: number, fromSeq: number): Promise<void>;
  /** Those of the given (partition, epoch) pairs that are no longer the newest. */
  fencedOff(owned: readonly (readonly [number, number])[]): Promise<number[]>;
  /** Is the failure one of the row (refused), or of the store (unavailable)? */
  classify(error: unknown): 'unavailable' | 'refused';
}

export interface LandingOptions {
  store: LandingStore;
  workerId: string;
  log: Logger;
  /** (partition, epoch) pairs that this worker holds now. */
  owned(): readonly (readonly [number, number])[];
  /** A partition turned out to be another's. */
  onFenced(partition: number): void;
  observe(table: LandingTable, rows: number, seconds: number): void;
}

/**
 * One step after the other, so that whatever a reader finds is whole: a listed trace has its spans, and a span its texts and its share of
 * the costs. The tables of one step land side by side. Scores come with the trace: landed without it, a new owner would give them again.
 */
const STEPS: readonly (readonly TableSpec[])[] = [[SPAN_TEXTS, USAGE_EVENTS], [SPANS], [TRACES, JUDGE_SCORES]];

export function emptyUnit(): LandingUnit {
  return { spans: [], span_texts_recent: [], traces: [], usage_events: [], judge_scores: [] };
}

/** The key of a span's or text's row within its partition. */
export const rowKey = (logSeq: number, logIndex: number, sub: number): string =>
  `${String(logSeq)}:${String(logIndex)}:${String(sub)}`;
/** The key of a trace's row: both rows of a pair share their new row's. */
export const traceRowKey = (orgId: string, traceId: string, version: number): string =>
  `${orgId} ${traceId} ${String(version)}`;

function ownRows(rows: LandingRow[], owned: readonly (readonly [number, number])[]): LandingRow[] {
  const epochs = new Map(owned);
  return rows.filter((row) => epochs.get(row.partition) === row.epoch);
}

/** Rows in pieces of bounded size. The rows of a pair, and what a batch used, stand in one: those are small, and share their event. */
function piecesOf(rows: LandingRow[]): LandingRow[][] {
  const pieces: LandingRow[][] = [];
  let piece: LandingRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (bytes >= LIMITS.insert_bytes_max && row.event !== null) {
      pieces.push(piece);
      piece = [];
      bytes = 0;
    }
    piece.push(row);
    bytes += row.line.length;
  }
  if (piece.length > 0) pieces.push(piece);
  return pieces;
}

export class Lander {
  readonly #options: LandingOptions;
  #statements = 0;

  constructor(options: LandingOptions) {
    this.#options = options;
  }

  /** Lands a unit, in STEPS. */
  async land(unit: LandingUnit): Promise<RefusedRow[]> {
    const refused: RefusedRow[][] = [];
    for (const specs of STEPS)
      refused.push(...(await Promise.all(specs.map((spec) => this.#landTable(spec, unit[spec.table])))));
    return refused.flat();
  }

  async #landTable(spec: TableSpec, rows: LandingRow[]): Promise<RefusedRow[]> {
    const refused: RefusedRow[] = [];
    // A stack of pieces: a refused piece is cut in two until the row that is to blame stands alone.
    const pieces = piecesOf(rows).reverse();
    for (let piece = pieces.pop(); piece !== undefined; piece = pieces.pop()) {
      const error = await this.#insertOwned(spec, piece);
      if (error === null) continue;
      const [only] = piece;
      if (piece.length === 1 && only !== undefined) {
        refused.push({ row: only, table: spec.table, detail: error });
        continue;
      }
      const middle = Math.ceil(piece.length / 2);
      pieces.push(piece.slice(middle), piece.slice(0, middle));
    }
    return refused;
  }

  /** @returns null when all rows are in (or are no longer ours to write), else why the store refuses them */
  async #insertOwned(spec: TableSpec, rows: LandingRow[]): Promise<string | null> {
    let left = rows;
    for (let attempt = 0; ; attempt += 1) {
      const owned = this.#options.owned();
      left = ownRows(left, owned);
      if (left.length === 0) return null;
      this.#statements += 1;
      const queryId = `land-${this.#options.workerId}-${spec.table}-${String(this.#statements)}`;
      const began = performance.now();
      try {
        const lines = left.map((row) => row.line);
        const written = await this.#options.store.insert(spec, lines, owned, queryId);
        this.#options.observe(spec.table, Math.min(written, left.length), (performance.now() - began) / 1000);
        // Rows of a materialized view count as written too, so for spans this says little; every event has a usage row.
        if (written >= left.length) return null;
        const fenced = new Set(await this.#dropFenced(owned));
        // Nothing at all, of partitions that are still ours: the statement was given up before it began. It says so like an answer that was lost.
        if (written > 0 || left.every(({ partition }) => fenced.has(partition))) return null;
        this.#options.log.warn(
          { table: spec.table, rows: left.length, attempt },
          'a landing wrote nothing; trying again',
        );
      } catch (error) {
        if (this.#options.store.classify(error) === 'refused')
          return error instanceof Error ? error.message : String(error);
        this.#options.log.warn(
          { err: error, table: spec.table, rows: left.length, attempt },
          'landing failed; trying again',
        );
      }
      await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt)));
      left = await this.#withoutLanded(spec.table, left, queryId, attempt);
    }
  }

  /** The statement may have worked though its answer was lost: only what is not in the table is sent again. */
  async #withoutLanded(
    table: LandingTable,
    rows: LandingRow[],
    queryId: string,
    attempt: number,
  ): Promise<LandingRow[]> {
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
        // An insert that was cut off may have written its spans and not what its view makes of them.
        if (table === 'spans' && left.length < rows.length)
          await Promise.all([...from].map(([partition, seq]) => this.#options.store.mendLookup(partition, seq)));
        return left;
      } catch (error) {
        if (ownRows(rows, this.#options.owned()).length === 0) return [];
        this.#options.log.warn({ err: error, table }, 'the store does not say what has landed; asking again');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(tries)));
      }
    }
  }

  /** @returns the partitions that have a newer owner */
  async #dropFenced(owned: readonly (readonly [number, number])[]): Promise<number[]> {
    const fenced = await this.#options.store.fencedOff(owned);
    for (const partition of fenced) this.#options.onFenced(partition);
    return fenced;
  }
}
