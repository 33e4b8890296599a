// Rows of partitions that moved to another shard. What landed before stays where it is: look-ups ask every
// shard that the partition has been in, and the rows of its former owner there are fenced off. Only the row
// of a trace moves, when the trace gets further events, because its pairs must be in one shard to cancel.
import type { ClickHouse } from '../../sql/client/client.ts';
import { TRACES } from '../../sql/stores/landing_tables.ts';
import type { PartitionRecord } from '../../schemas/records/partition.ts';
import type { EventRef } from '../stages/dedupe.ts';
import type { LandedCall, PlacedRecord } from '../stages/match.ts';
import type { StoredTrace } from '../traces/stored_trace.ts';
import { KnownRows } from './known_rows.ts';
import type { FullFrom, HistoryOptions, HistoryStore, PartitionHistory, PartitionMemory } from './partition_state.ts';
import type { Fences, PartitionEpoch, Writers } from '../landing/fences.ts';
import { ClickHouseHistoryStore } from '../landing/history_store.ts';
import type { LandingStore } from '../landing/lander.ts';
import { pieceOfRows } from '../landing/landing_piece.ts';
import { traceRowKey } from '../landing/landing_row.ts';
import { signedTrace, traceCells } from '../landing/row_encoders.ts';

/** A shard, as rows of a partition are looked for in it. */
export interface LookedShard {
  clickhouse: ClickHouse;
  fences: Pick<Fences, 'raise'>;
  store: Pick<LandingStore, 'insert' | 'end'>;
}

export interface EarlierShardsOptions {
  own: LookedShard;
  /** Returns the shards in which rows of a partition landed before, the newest first. */
  before: (partition: number) => readonly LookedShard[];
  /** Returns the epoch under which this worker owns a partition; undefined if it does not. */
  epochOf: (partition: number) => number | undefined;
  workerId: string;
}

type TraceRef = Readonly<{ org_id: string; trace_id: string }>;

/** Look-ups of a worker in the shard of its partitions and in those where they were before. */
export class RowsOfShards {
  readonly #options: EarlierShardsOptions;
  readonly #known = new Map<LookedShard, KnownRows>();
  #statements = 0;

  constructor(options: EarlierShardsOptions) {
    this.#options = options;
  }

  /** The first shard that has a correction had it first in the log, too. */
  async findCorrections(partition: number, corrections: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const shard of this.#shardsOf(partition))
      for (const [hex, seq] of await this.#knownIn(shard).findCorrections(partition, corrections))
        found.set(hex, Math.min(seq, found.get(hex) ?? Infinity));
    return found;
  }

  /** Returns the live rows of those of the given traces that have one, after moving those of earlier shards. */
  async findTraces(partition: number, traces: readonly TraceRef[]): Promise<StoredTrace[]> {
    const found = await this.#knownIn(this.#options.own).findTraces(partition, traces);
    const earlier = this.#options.before(partition);
    if (earlier.length === 0) return found;
    const here = new Map((await this.liveHere(partition, found)).map((trace) => [keyOf(trace.state), trace]));
    for (const shard of earlier) {
      const there = await this.#knownIn(shard).findTraces(partition, traces);
      await this.moveHere(partition, shard, there, here);
    }
    return [...here.values()];
  }

  /** Returns the calls in log order. */
  async findCalls(places: readonly PlacedRecord[]): Promise<LandedCall[]> {
    const found = await this.#eachShard(places, (known, some) => known.findCalls(some));
    return found.toSorted((a, b) => a.log_seq - b.log_seq);
  }

  async findLanded(events: readonly EventRef[]): Promise<ReadonlySet<string>> {
    return new Set(await this.#eachShard(events, async (known, some) => [...(await known.findLanded(some))]));
  }

  /**
   * Moves rows of traces from an earlier shard: lands each here, unless it is here already, and cancels it
   * there. A crash in between leaves it in both, and the next call cancels it. Rows that moved before are left out.
   * @param here rows of the same traces in the own shard, by trace; the moved ones are added
   */
  async moveHere(
    partition: number,
    from: LookedShard,
    there: readonly StoredTrace[],
    here: Map<string, StoredTrace>,
  ): Promise<void> {
    const live = there.length === 0 ? [] : await this.#knownIn(from).liveAmong(partition, there);
    const missing = live.filter((trace) => !here.has(keyOf(trace.state)));
    await this.#write(this.#options.own, partition, missing, 1);
    for (const trace of missing) here.set(keyOf(trace.state), trace);
    await this.#write(from, partition, live, -1);
  }

  /** Returns those of the traces found in the own shard whose row is there: it may have been elsewhere in between. */
  async liveHere(partition: number, found: readonly StoredTrace[]): Promise<StoredTrace[]> {
    return found.length === 0 ? [] : this.#knownIn(this.#options.own).liveAmong(partition, found);
  }

  async #write(shard: LookedShard, partition: number, traces: readonly StoredTrace[], sign: 1 | -1): Promise<void> {
    const epoch = this.#options.epochOf(partition);
    if (traces.length === 0 || epoch === undefined) return;
    const piece = pieceOfRows(
      TRACES,
      traces.map(({ state, version }) => ({
        wire: signedTrace(traceCells(state, partition, version), sign),
        partition,
        epoch,
        log_seq: version,
        key: traceRowKey(state.org_id, state.trace_id, version),
        event: null,
      })),
    );
    const owned: PartitionEpoch[] = [[partition, epoch]];
    this.#statements += 1;
    const queryId = `land-${this.#options.workerId}-moved_traces-${this.#statements}`;
    try {
      await shard.store.insert(TRACES, piece, owned, queryId);
    } catch (error) {
      // The caller looks again at what is where, so the statement must not write afterwards.
      await shard.store.end(queryId);
      throw error;
    }
  }

  async #eachShard<Ref extends { partition: number }, Found>(
    refs: readonly Ref[],
    find: (known: KnownRows, refs: readonly Ref[]) => Promise<readonly Found[]>,
  ): Promise<Found[]> {
    const byShard = new Map<LookedShard, Ref[]>();
    for (const ref of refs)
      for (const shard of this.#shardsOf(ref.partition)) byShard.set(shard, [...(byShard.get(shard) ?? []), ref]);
    const found = await Promise.all([...byShard].map(([shard, some]) => find(this.#knownIn(shard), some)));
    return found.flat();
  }

  #shardsOf(partition: number): LookedShard[] {
    return [this.#options.own, ...this.#options.before(partition)];
  }

  #knownIn(shard: LookedShard): KnownRows {
    const known = this.#known.get(shard) ?? new KnownRows(shard.clickhouse);
    this.#known.set(shard, known);
    return known;
  }
}

const keyOf = ({ org_id, trace_id }: TraceRef): string => `${org_id} ${trace_id}`;

/** Raises the fences of partitions in the shard where they land and in those where they were. */
export class FencesOfShards {
  readonly #own: LookedShard;
  readonly #before: EarlierShardsOptions['before'];

  constructor({ own, before }: Pick<EarlierShardsOptions, 'own' | 'before'>) {
    this.#own = own;
    this.#before = before;
  }

  async raise(owned: readonly PartitionEpoch[], writers?: Writers): Promise<void> {
    const earlier = byEarlier(owned, ([partition]) => this.#before(partition));
    await Promise.all([
      this.#own.fences.raise(owned, writers),
      ...[...earlier].map(([shard, some]) => shard.fences.raise(some, writers)),
    ]);
  }
}

/** What the shards know of partitions that a worker takes over. */
export class HistoryOfShards implements HistoryStore {
  readonly #own: HistoryStore;
  readonly #rows: RowsOfShards;
  readonly #before: EarlierShardsOptions['before'];

  constructor({ own, before }: Pick<EarlierShardsOptions, 'own' | 'before'>, rows: RowsOfShards) {
    this.#own = new ClickHouseHistoryStore(own.clickhouse);
    this.#rows = rows;
    this.#before = before;
  }

  async recall(
    records: readonly PartitionRecord[],
    options: HistoryOptions,
    memories: ReadonlyMap<number, PartitionMemory>,
  ): Promise<void> {
    await Promise.all([
      this.#own.recall(records, options, memories),
      ...this.#earlier(records).map(([shard, some]) => historyIn(shard).recall(some, options, memories)),
    ]);
  }

  async newestTraces(
    records: readonly PartitionRecord[],
    options: HistoryOptions,
    max: number,
  ): Promise<readonly { partition: number; org_id: string; trace_id: string }[]> {
    const found = await Promise.all([
      this.#own.newestTraces(records, options, max),
      ...this.#earlier(records).map(([shard, some]) => historyIn(shard).newestTraces(some, options, max)),
    ]);
    return found.flat().slice(0, max);
  }

  /** Also moves the rows of open traces to the shard of their partition. */
  async histories(
    records: readonly PartitionRecord[],
    options: HistoryOptions,
  ): Promise<ReadonlyMap<number, PartitionHistory>> {
    const merged = new Map(await this.#own.histories(records, options));
    const moved = this.#earlier(records);
    for (const partition of new Set(moved.flatMap(([, some]) => some.map((record) => record.partition)))) {
      const own = merged.get(partition);
      if (own !== undefined)
        merged.set(partition, { ...own, traces: await this.#rows.liveHere(partition, own.traces) });
    }
    for (const [shard, some] of moved)
      for (const [partition, history] of await historyIn(shard).histories(some, options)) {
        const own = merged.get(partition);
        if (own !== undefined) merged.set(partition, await this.#together(partition, shard, own, history));
      }
    return merged;
  }

  async #together(
    partition: number,
    shard: LookedShard,
    own: PartitionHistory,
    earlier: PartitionHistory,
  ): Promise<PartitionHistory> {
    const traces = new Map(own.traces.map((trace) => [keyOf(trace.state), trace]));
    await this.#rows.moveHere(partition, shard, earlier.traces, traces);
    return {
      spans: own.spans.union(earlier.spans),
      texts: own.texts.union(earlier.texts),
      usage_through: Math.max(own.usage_through, earlier.usage_through),
      decided: new Map<string, FullFrom>([...earlier.decided, ...own.decided]),
      traces: [...traces.values()].toSorted((a, b) => a.version - b.version),
    };
  }

  #earlier(records: readonly PartitionRecord[]): [LookedShard, PartitionRecord[]][] {
    return [...byEarlier(records, ({ partition }) => this.#before(partition))];
  }
}

const historyIn = ({ clickhouse }: LookedShard): HistoryStore => new ClickHouseHistoryStore(clickhouse);

/** Groups items by each of the shards of their partition. */
function byEarlier<Item>(
  items: readonly Item[],
  shardsOf: (item: Item) => readonly LookedShard[],
): Map<LookedShard, Item[]> {
  const groups = new Map<LookedShard, Item[]>();
  for (const item of items) for (const shard of shardsOf(item)) groups.set(shard, [...(groups.get(shard) ?? []), item]);
  return groups;
}
