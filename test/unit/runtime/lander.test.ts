import { describe, expect, it } from 'vitest';
import { emptyUnit, Lander, type LandingStore, type StoreFailure } from '../../../pipeline/landing/lander.ts';
import type { PartitionEpoch } from '../../../pipeline/landing/fences.ts';
import type { LandingPiece } from '../../../pipeline/landing/landing_piece.ts';
import type { LandingRow } from '../../../pipeline/landing/landing_row.ts';
import { LIMITS } from '../../../pipeline/limits.ts';
import type { LandingTable, TableSpec } from '../../../sql/stores/landing_tables.ts';
import { createLogger } from '../../../ops/platform/logger.ts';

const row = (partition: number, seq: number, line = `${partition}:${seq}`): LandingRow => ({
  wire: line,
  partition,
  epoch: 1,
  log_seq: seq,
  key: `${seq}:0:0`,
  event: null,
});

class Refused extends Error {}
class Fenced extends Error {}

/**
 * A store that keeps rows in memory and fails on request: before the write, after it, or for an
 * invalid row.
 */
class FaultyStore implements LandingStore {
  readonly rows: string[] = [];
  readonly ended: string[] = [];
  /** Partition and position from which the look-up by trace id was repaired. */
  readonly mended: [number, number][] = [];
  fenced = new Set<number>();
  /** Questions which partitions are fenced off that get no answer. */
  unanswered = 0;
  failures: ('before' | 'after' | 'given up')[] = [];

  insert(_spec: TableSpec, piece: LandingPiece, owned: readonly (readonly [number, number])[]): Promise<void> {
    const lines = piece.rows().map(({ wire }) => String(wire));
    if (lines.some((line) => line.includes('poison'))) return Promise.reject(new Refused('cannot parse'));
    const failure = this.failures.shift();
    if (failure === 'before') return Promise.reject(new Error('connection reset'));
    if (failure === 'given up') return Promise.reject(new Fenced('violated'));
    const mine = new Set(owned.map(([partition]) => partition).filter((partition) => !this.fenced.has(partition)));
    if (lines.some((line) => !mine.has(Number(line.split(':')[0])))) return Promise.reject(new Fenced('violated'));
    this.rows.push(...lines);
    return failure === 'after' ? Promise.reject(new Error('socket hang up')) : Promise.resolve();
  }

  end(queryId: string): Promise<void> {
    this.ended.push(queryId);
    return Promise.resolve();
  }

  landedKeys(_table: LandingTable, partition: number): Promise<ReadonlySet<string>> {
    return Promise.resolve(
      new Set(
        this.rows.filter((line) => line.startsWith(`${partition}:`)).map((line) => `${line.split(':')[1] ?? ''}:0:0`),
      ),
    );
  }

  repairLookup(partition: number, fromSeq: number): Promise<void> {
    this.mended.push([partition, fromSeq]);
    return Promise.resolve();
  }

  fencedOff(): Promise<number[]> {
    this.unanswered -= 1;
    if (this.unanswered >= 0) return Promise.reject(new Error('connection reset'));
    return Promise.resolve([...this.fenced]);
  }

  classify(error: unknown): StoreFailure {
    if (error instanceof Fenced) return 'fenced';
    return error instanceof Refused ? 'refused' : 'unavailable';
  }
}

/** A store that records the sizes of the inserts. */
class CountingStore extends FaultyStore {
  readonly inserts: number[] = [];
  override insert(spec: TableSpec, piece: LandingPiece, owned: readonly (readonly [number, number])[]): Promise<void> {
    this.inserts.push(piece.count);
    return super.insert(spec, piece, owned);
  }
}

/** A store that records the table of each insert as it begins and as it ends. */
class WatchedStore extends FaultyStore {
  readonly log: string[] = [];
  override async insert(
    spec: TableSpec,
    piece: LandingPiece,
    owned: readonly (readonly [number, number])[],
  ): Promise<void> {
    this.log.push(`${spec.table} begins`);
    await new Promise((resolve) => setTimeout(resolve, spec.table === 'traces' ? 0 : 5));
    this.log.push(`${spec.table} ends`);
    return super.insert(spec, piece, owned);
  }
}

function lander(store: FaultyStore, fenced: number[] = []): Lander {
  const dropped = new Set<number>();
  const all: readonly PartitionEpoch[] = [
    [0, 1],
    [1, 1],
  ];
  return new Lander({
    store,
    workerId: 'w1',
    logger: createLogger('test', 'silent'),
    owned: () => all.filter(([partition]) => !dropped.has(partition)),
    onFenced: (partition) => {
      dropped.add(partition);
      fenced.push(partition);
    },
    observe: () => undefined,
  });
}

describe('Lander', () => {
  it("a large landing uses several inserts, in order, but one for a batch's use and pairs of traces", async () => {
    const store = new CountingStore();
    const large = 'x'.repeat(LIMITS.insert_bytes_max / 2);
    const source = {
      partition: 0,
      log_seq: 0,
      log_index: 0,
      org_id: 'o',
      format: 'custom',
      event_hex: '',
      trace_id: 't',
      received_at: 0,
      body: '',
    } as const;
    const rows = [1, 2, 3, 4, 5].map((seq) => row(0, seq, `0:${seq}:${large}`));
    const spans = rows.map((one) => ({ ...one, event: source }));
    await lander(store).land({ ...emptyUnit(), spans });
    expect(store.inserts).toEqual([2, 2, 1]);
    expect(store.rows.map((line) => line.slice(0, 3))).toEqual(['0:1', '0:2', '0:3', '0:4', '0:5']);
    await lander(store).land({ ...emptyUnit(), traces: rows });
    expect(store.inserts.slice(3)).toEqual([5]);
  });

  it.each([
    [['before']],
    [['after']],
    [['before', 'after', 'before']],
    [['after', 'after']],
    [['given up']],
    [['given up', 'after']],
  ] as const)('a landing writes every row once when the store fails %j', async (failures) => {
    const store = new FaultyStore();
    store.failures = [...failures];
    const unit = { ...emptyUnit(), spans: [row(0, 1), row(0, 2), row(1, 3)] };
    expect(await lander(store).land(unit)).toEqual([]);
    expect(store.rows.toSorted()).toEqual(['0:1', '0:2', '1:3']);
    expect(store.ended.length).toBeGreaterThan(0);
    // The look-up by trace id may lack spans whose statement did not end well.
    expect(store.mended.length > 0).toBe(failures.some((failure) => failure === 'after'));
  });

  it("a landing writes a span's texts and its share of the costs before it, and the rows that list a trace after all its spans", async () => {
    const store = new WatchedStore();
    const rows = [row(0, 1)];
    await lander(store).land({
      spans: rows,
      span_texts_recent: rows,
      traces: rows,
      usage_events: rows,
      judge_scores: rows,
      blocks: [],
    });
    const at = (what: string): number => store.log.indexOf(what);
    expect(store.log).toHaveLength(10);
    for (const table of ['span_texts_recent', 'usage_events'])
      expect(at(`${table} ends`)).toBeLessThan(at('spans begins'));
    for (const table of ['traces', 'judge_scores']) expect(at('spans ends')).toBeLessThan(at(`${table} begins`));
    expect(at('usage_events begins')).toBeLessThan(at('span_texts_recent ends'));
  });

  it('a landing returns the one invalid row and writes its neighbours once', async () => {
    const store = new FaultyStore();
    const rows = Array.from({ length: 20 }, (_, i) => row(0, i, i === 13 ? '0:poison' : `0:${i}`));
    const refused = await lander(store).land({ ...emptyUnit(), spans: rows });
    expect(refused.map(({ row: { log_seq }, table }) => [log_seq, table])).toEqual([[13, 'spans']]);
    expect(store.rows.length).toBe(19);
    expect(new Set(store.rows).size).toBe(19);
  });

  it('a landing writes nothing that was made under an earlier epoch', async () => {
    const store = new FaultyStore();
    await lander(store).land({ ...emptyUnit(), spans: [row(0, 1), { ...row(0, 2), epoch: 0 }] });
    expect(store.rows).toEqual(['0:1']);
  });

  it('a landing drops a partition that is fenced off, writes none of its rows, and those of the others once', async () => {
    const store = new FaultyStore();
    store.fenced.add(1);
    const fenced: number[] = [];
    await lander(store, fenced).land({ ...emptyUnit(), spans: [row(0, 1), row(1, 2)] });
    expect(store.rows).toEqual(['0:1']);
    expect(fenced).toEqual([1]);
    await lander(store, fenced).land({ ...emptyUnit(), spans: [row(1, 3)] });
    expect(store.rows).toEqual(['0:1']);
    expect(fenced).toEqual([1, 1]);
  });

  it('a landing asks again which partitions are fenced off when the store did not answer', async () => {
    const store = new FaultyStore();
    store.fenced.add(1);
    store.unanswered = 1;
    const fenced: number[] = [];
    await lander(store, fenced).land({ ...emptyUnit(), spans: [row(0, 1), row(1, 2)] });
    expect(store.rows).toEqual(['0:1']);
    expect(fenced).toEqual([1]);
  });
});
