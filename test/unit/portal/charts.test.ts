// Charts over time: colours of values, stacks, and what a pointer or a key reaches.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ChartSeries,
  largestOf,
  partAt,
  pointAt,
  stackOf,
  stretchAfter,
  tickPoints,
  totalAt,
} from '../../../api/portal/web/charts/chart_shape.ts';
import { COLOURS, coloursOf, rememberedColours } from '../../../api/portal/web/charts/colours.ts';

const bar = (id: string, values: (number | null)[]): ChartSeries => ({
  id,
  label: id,
  values,
  colour: 'series-1',
  form: 'bar',
});
const values = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 12 }), { maxLength: 20 });

describe('colours of values', () => {
  it('differ for the first eight values of a chart', () => {
    fc.assert(
      fc.property(values, (names) => {
        const first = coloursOf(names).slice(0, COLOURS);
        expect(new Set(first).size).toBe(first.length);
        expect(first.every((colour) => colour >= 1 && colour <= COLOURS)).toBe(true);
      }),
    );
  });

  it('are the same for the same values on every load', () => {
    fc.assert(
      fc.property(values, (names) => {
        expect(coloursOf(names)).toEqual(coloursOf(names));
      }),
    );
  });

  it('do not depend on the values that come later', () => {
    fc.assert(
      fc.property(values, fc.nat(20), (names, length) => {
        expect(coloursOf(names.slice(0, length))).toEqual(coloursOf(names).slice(0, length));
      }),
    );
  });

  it('stay with a value on the next screen of the organization, also in another order', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.shuffledSubarray(['gpt-4o', 'o3', 'haiku', 'sonnet', 'embed'], { minLength: 2 }),
        (org, names) => {
          const first = new Map(names.map((name, at) => [name, rememberedColours(org, names)[at]]));
          const again = names.toReversed();
          expect(rememberedColours(org, again)).toEqual(again.map((name) => first.get(name)));
        },
      ),
    );
  });
});

describe('the stack of a chart', () => {
  it('puts each part on the sum of those below it', () => {
    const stack = stackOf([bar('a', [1, null, 3]), bar('b', [2, 2, 0])], 3);
    expect(stack).toEqual([
      { id: 'a', low: [0, 0, 0], high: [1, 0, 3] },
      { id: 'b', low: [1, 0, 3], high: [3, 2, 3] },
    ]);
  });

  it('ends at the total of each point', () => {
    const amounts = fc.array(fc.array(fc.nat(1000), { minLength: 5, maxLength: 5 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(amounts, (all) => {
        const series = all.map((one, at) => bar(String(at), one));
        const top = stackOf(series, 5).at(-1)?.high;
        expect(top).toEqual([0, 1, 2, 3, 4].map((at) => totalAt(series, at)));
        expect(largestOf({ points: ['1', '2', '3', '4', '5'], series })).toBe(Math.max(...(top ?? [])));
      }),
    );
  });

  it('scales to limits and bands above the values', () => {
    const content = {
      points: ['a'],
      series: [bar('a', [1])],
      bands: [{ label: 'band', low: [0], high: [4], colour: 'accent' as const }],
      limits: [{ value: 9, label: 'Hard limit', colour: 'error' as const }],
    };
    expect(largestOf(content)).toBe(9);
    expect(largestOf({ ...content, top: 1 })).toBe(1);
  });
});

describe('the point under a pointer', () => {
  const geometry = { left: 40, top: 10, width: 300, height: 100, max: 10 };
  const series = [bar('low', [4, 0, 1]), bar('high', [4, 0, 1])];
  const points = ['1', '2', '3'];

  it.each([
    [39, -1],
    [40, 0],
    [139.9, 0],
    [140, 1],
    [339, 2],
    [340, -1],
  ])('at %d pixels from the left is %d', (x, at) => {
    expect(pointAt(geometry, x, 3)).toBe(at);
  });

  it('names the part of the stack, and none above it', () => {
    expect(partAt(geometry, 105, { points, series }, 0)).toBe('low');
    expect(partAt(geometry, 55, { points, series }, 0)).toBe('high');
    expect(partAt(geometry, 15, { points, series }, 0)).toBeNull();
    expect(partAt(geometry, 105, { points, series }, 1)).toBeNull();
  });
});

describe('keys over a chart', () => {
  const press = (key: string, shiftKey = false) => ({ key, shiftKey });

  it('begin at the last point and stay within the points', () => {
    expect(stretchAfter(press('ArrowLeft'), null, 5)).toEqual({ from: 4, to: 4 });
    expect(stretchAfter(press('ArrowRight'), { from: 4, to: 4 }, 5)).toEqual({ from: 4, to: 4 });
    expect(stretchAfter(press('Home'), { from: 4, to: 4 }, 5)).toEqual({ from: 0, to: 0 });
    expect(stretchAfter(press('ArrowLeft'), null, 0)).toBeNull();
    expect(stretchAfter(press('x'), null, 5)).toBeNull();
  });

  it('extend a stretch while Shift is held', () => {
    expect(stretchAfter(press('ArrowLeft', true), { from: 3, to: 3 }, 5)).toEqual({ from: 3, to: 2 });
    expect(stretchAfter(press('End', true), { from: 1, to: 2 }, 5)).toEqual({ from: 1, to: 4 });
  });
});

describe('labels of the axis', () => {
  it('are as many as fit, from the first point on', () => {
    expect(tickPoints(7, 640, 64)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(tickPoints(30, 640, 64)).toEqual([0, 3, 6, 9, 12, 15, 18, 21, 24, 27]);
    expect(tickPoints(0, 640, 64)).toEqual([]);
    expect(tickPoints(3, 10, 64)).toEqual([0]);
  });
});
