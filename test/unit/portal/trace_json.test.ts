import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonTree } from '../../../api/portal/web/trace/json/json_tree.ts';

const shown = (tree: JsonTree) => tree.rows(0, tree.size).map(({ depth, key, preview }) => [depth, key, preview]);

describe('the rows of a JSON value', () => {
  it('begin with the first level open', () => {
    expect(shown(new JsonTree({ a: 1, b: 'two', c: null }))).toEqual([
      [0, null, '{ a: 1, b: "two", c: null }'],
      [1, 'a', '1'],
      [1, 'b', '"two"'],
      [1, 'c', 'null'],
    ]);
  });

  it('cut long lists into ranges, so that opening one makes at most 1,000 rows', () => {
    const tree = new JsonTree(Array.from({ length: 2_500_000 }, (_, i) => i));
    expect(shown(tree).map(([, , preview]) => preview)).toEqual([
      '[0, 1, 2, 3, 4, 5, …]',
      '0 … 999999',
      '1000000 … 1999999',
      '2000000 … 2499999',
    ]);
    tree.setOpen([2], true);
    tree.setOpen([2, 499], true);
    expect(tree.size).toBe(1 + 3 + 500 + 1000);
    expect(tree.rows(1503, 1504)[0]).toMatchObject({ key: '2499999', path: [2, 499, 999] });
  });

  it('say how long a text is whose preview is cut', () => {
    const [row] = new JsonTree('x'.repeat(1000)).rows(0, 1);
    expect(row).toMatchObject({ kind: 'string', isCut: true, size: 1000 });
  });

  it('return the whole text of a node', () => {
    const tree = new JsonTree({ a: { b: ['long'.repeat(200)] } });
    tree.reveal([0, 0, 0]);
    expect(tree.textOf([0, 0, 0])).toBe('long'.repeat(200));
    expect(tree.textOf([0])).toContain('"b"');
  });

  it('count what is open, and are in the order of the text', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(fc.tuple(fc.nat(40), fc.boolean()), { maxLength: 20 }), (value, steps) => {
        const tree = new JsonTree(value);
        for (const [at, isOpen] of steps) {
          const [row] = tree.rows(at % tree.size, (at % tree.size) + 1);
          if (row !== undefined) tree.setOpen(row.path, isOpen);
        }
        const rows = tree.rows(0, tree.size);
        expect(rows).toHaveLength(tree.size);
        rows.forEach((row, index) => {
          expect(tree.reveal(row.path)).toBe(index);
        });
      }),
    );
  });
});

describe('find in a JSON value', () => {
  it('looks at keys and values that are not open, and opens the way to a match', () => {
    const tree = new JsonTree({ outer: { inner: { Needle: 1, other: 'a needle too' } } });
    const found = tree.find('needle');
    expect(found).toHaveLength(2);
    const row = tree.reveal(found[1] ?? []);
    expect(tree.rows(row, row + 1)[0]).toMatchObject({ key: 'other', isMatch: true });
  });

  it('finds nothing for an empty text', () => {
    expect(new JsonTree({ a: 1 }).find('')).toEqual([]);
  });
});
