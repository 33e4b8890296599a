// Rows that were encoded slice by slice: they land by one statement, and are sent one by one when
// the answer is lost, a row is refused, or a partition has another owner.
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { decodeBlock } from '../../../sql/client/native_rows.ts';
import { UnencodableCell } from '../../../sql/client/native_block.ts';
import { positionOf, SPANS, type TableSpec } from '../../../sql/stores/landing_tables.ts';
import { BlockBuilder, type LandingBlock, rowsOf } from '../../../pipeline/landing/landing_block.ts';
import {
  emptyUnit,
  Lander,
  type LandingStore,
  type LandingUnit,
  type StoreFailure,
} from '../../../pipeline/landing/lander.ts';
import type { LandingPiece } from '../../../pipeline/landing/landing_piece.ts';
import { rowKey } from '../../../pipeline/landing/landing_row.ts';
import { spanCells } from '../../../pipeline/landing/row_encoders.ts';
import { LIMITS } from '../../../pipeline/limits.ts';
import type { LoggedEvent, LogPosition } from '../../../pipeline/stage.ts';
import { aSpan } from '../../support/spans.ts';

const logged = (position: LogPosition): LoggedEvent => ({
  ...position,
  org_id: 'org_a',
  format: 'custom',
  event_hex: '',
  trace_id: 'trc_1',
  received_at: 0,
  body: `event ${position.log_seq}`,
});

interface Given {
  partition?: number;
  epoch?: number;
  name?: string;
  input_tokens?: number;
  attributes?: Record<string, unknown>;
}

/** Returns a unit with a block of spans for each list; positions count from 1. */
function aUnit(...blocks: readonly Given[][]): LandingUnit {
  const unit = emptyUnit();
  let log_seq = 0;
  for (const given of blocks) {
    const builder = new BlockBuilder(SPANS, logged);
    for (const { partition = 0, epoch = 1, ...over } of given) {
      log_seq += 1;
      builder.add(spanCells(aSpan(over), { partition, log_seq, log_index: 0 }, 0, true), partition, epoch);
    }
    const { blocks: made, rows } = builder.take();
    unit.blocks.push(...made);
    unit.spans.push(...rows);
  }
  return unit;
}

class Poisoned extends Error {}
class Fenced extends Error {}

/** A store that decodes what it is sent. It refuses spans named `poison`, and fails as it is told to. */
class WireStore implements LandingStore {
  readonly landed: string[] = [];
  readonly statements: number[] = [];
  failures: ('before' | 'after' | 'given up')[] = [];

  insert(spec: TableSpec, piece: LandingPiece, owned: readonly (readonly [number, number])[]): Promise<void> {
    let body: string | readonly Buffer[];
    try {
      body = piece.body();
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
    if (typeof body === 'string') throw new Error(`rows of ${spec.table} travel as blocks`);
    const rows = body.flatMap((block) => decodeBlock(SPANS.block, block));
    this.statements.push(rows.length);
    if (rows.some((row) => row.includes('poison'))) return Promise.reject(new Poisoned('poison'));
    const failure = this.failures.shift();
    if (failure === 'before') return Promise.reject(new Error('connection reset'));
    if (failure === 'given up') return Promise.reject(new Fenced('violated'));
    const partitions = new Set(owned.map(([partition]) => partition));
    const places = rows.map((row) => positionOf(SPANS, row));
    if (places.some(({ partition }) => !partitions.has(partition))) return Promise.reject(new Fenced('violated'));
    this.landed.push(...places.map(({ partition, log_seq }) => `${partition}:${log_seq}`));
    return failure === 'after' ? Promise.reject(new Error('socket hang up')) : Promise.resolve();
  }

  end = (): Promise<void> => Promise.resolve();
  landedKeys = (_: string, partition: number): Promise<ReadonlySet<string>> =>
    Promise.resolve(
      new Set(
        this.landed
          .map((place) => place.split(':').map(Number))
          .filter(([own]) => own === partition)
          .map(([, seq = 0]) => rowKey(seq, 0, 0)),
      ),
    );
  repairLookup = (): Promise<void> => Promise.resolve();
  fencedOff = (): Promise<number[]> => Promise.resolve([]);
  classify = (error: unknown): StoreFailure => {
    if (error instanceof Fenced) return 'fenced';
    return error instanceof Poisoned || error instanceof UnencodableCell ? 'refused' : 'unavailable';
  };
}

function landerOf(store: WireStore): Lander {
  return new Lander({
    store,
    workerId: 'w1',
    logger: createLogger('test', 'silent'),
    owned: () => [
      [0, 1],
      [1, 1],
    ],
    onFenced: () => undefined,
    observe: () => undefined,
  });
}

describe('a landing of encoded rows', () => {
  it('sends several blocks by one statement', async () => {
    const store = new WireStore();
    expect(await landerOf(store).land(aUnit([{}, { partition: 1 }], [{}]))).toEqual([]);
    expect(store.statements).toEqual([3]);
    expect(store.landed).toEqual(['0:1', '1:2', '0:3']);
  });

  it('begins another statement at the maximum bytes of an insert', async () => {
    const store = new WireStore();
    const large = { attributes: { text: 'x'.repeat(LIMITS.insert_bytes_max / 2) } };
    await landerOf(store).land(aUnit([large], [large], [large]));
    expect(store.statements).toEqual([2, 1]);
  });

  it.each([[['before']], [['after']], [['given up']], [['after', 'before', 'after']]] as const)(
    'writes every row once when the store fails %j',
    async (failures) => {
      const store = new WireStore();
      store.failures = [...failures];
      expect(await landerOf(store).land(aUnit([{}, { partition: 1 }], [{}, {}]))).toEqual([]);
      expect(store.landed.toSorted()).toEqual(['0:1', '0:3', '0:4', '1:2']);
    },
  );

  it.each<[string, Given]>([
    ['the store refuses', { name: 'poison' }],
    ['does not fit its column', { input_tokens: -1 }],
  ])('returns the row that %s with its event, and writes the others', async (_, bad) => {
    const store = new WireStore();
    const refused = await landerOf(store).land(aUnit([{}, {}, {}], [{}, bad, {}], [{}]));
    expect(refused.map(({ row, table }) => [table, row.log_seq, row.event?.body])).toEqual([['spans', 5, 'event 5']]);
    expect(store.landed.toSorted()).toEqual(['0:1', '0:2', '0:3', '0:4', '0:6', '0:7']);
  });

  it('writes nothing that was made under an earlier epoch, or for a partition of another owner', async () => {
    const store = new WireStore();
    await landerOf(store).land(
      aUnit([{}, { partition: 1, epoch: 0 }, { partition: 2 }], [{ partition: 1, epoch: 0 }, {}]),
    );
    expect(store.landed).toEqual(['0:1', '0:5']);
  });
});

it('the rows of a block have their positions, keys, epochs and events', () => {
  const [block] = aUnit([{}, { partition: 3, epoch: 7 }]).blocks as [LandingBlock];
  expect(rowsOf(block).map(({ wire: _, ...row }) => row)).toEqual([
    { partition: 0, epoch: 1, log_seq: 1, key: '1:0:0', event: logged({ partition: 0, log_seq: 1, log_index: 0 }) },
    { partition: 3, epoch: 7, log_seq: 2, key: '2:0:0', event: logged({ partition: 3, log_seq: 2, log_index: 0 }) },
  ]);
});
