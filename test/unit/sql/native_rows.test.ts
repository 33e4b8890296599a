// Rows of a block are had again as they were encoded, for every type of column that travels in one.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type BlockColumn, type Cell, type Cells, encodeBlock } from '../../../sql/client/native_block.ts';
import { decodeBlock } from '../../../sql/client/native_rows.ts';
import { CELLS } from '../../support/native_cells.ts';

const COLUMNS: readonly BlockColumn[] = Object.keys(CELLS).map((type, index) => ({ name: `c${index}`, type }));

/** Returns a cell as the store has it. */
function stored(cell: Cell): unknown {
  if (typeof cell === 'string') return cell.toWellFormed();
  if (typeof cell === 'number' && !Number.isFinite(cell)) return null;
  return Array.isArray(cell) ? cell.map(stored) : cell;
}

it('the rows of a block are those that were encoded', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(...Object.values(CELLS)), { maxLength: 40 }), (rows) => {
      expect(decodeBlock(COLUMNS, encodeBlock(COLUMNS, rows))).toEqual(rows.map((row) => row.map(stored)));
    }),
    { numRuns: 30 },
  );
});

it.each([256, 257, 65_536, 65_537])('keeps %i different names apart', (names) => {
  const columns = [{ name: 'name', type: 'LowCardinality(String)' }];
  const rows = Array.from({ length: names + 1 }, (_, index): Cells => [`name ${index % names}`]);
  expect(decodeBlock(columns, encodeBlock(columns, rows))).toEqual(rows);
});

it('a block does not change when the next one is encoded', () => {
  const columns = [{ name: 't', type: 'String' }];
  const [small, large] = ['a', 'b'.repeat(20_000_000)].map((text): Cells[] => [[text]]);
  const blocks = [small, large, small, large].map((rows = []) => ({ rows, block: encodeBlock(columns, rows) }));
  for (const { rows, block } of blocks) expect(decodeBlock(columns, block)).toEqual(rows);
});

it('a block that failed leaves nothing in the next one', () => {
  const columns = [
    { name: 't', type: 'String' },
    { name: 'n', type: 'UInt16' },
  ];
  expect(() => encodeBlock(columns, [['left behind', -1]])).toThrow('-1 is no whole number');
  expect(decodeBlock(columns, encodeBlock(columns, [['a', 1]]))).toEqual([['a', 1]]);
});

it('says which column a block does not have', () => {
  const block = encodeBlock([{ name: 'a', type: 'String' }], [['x']]);
  expect(() => decodeBlock([{ name: 'b', type: 'String' }], block)).toThrow(
    'the block has a column a String, not b String',
  );
  expect(() => decodeBlock([], block)).toThrow('the block has 1 columns, not 0');
});
