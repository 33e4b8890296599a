import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lineChart, type LineChart, type Series } from '../../support/plot.ts';

const chart = (series: readonly Series[], more: Partial<LineChart> = {}): string =>
  lineChart({ title: 'Memory', x_label: 'hours', y_label: 'MiB', series, ...more });

/** Returns the points of each polyline as numbers. */
const drawn = (svg: string): number[][][] =>
  [...svg.matchAll(/<polyline points="([^"]+)"/g)].map(([, points = '']) =>
    points.split(' ').map((point) => point.split(',').map(Number)),
  );
const ticks = (svg: string, anchor: 'middle' | 'end'): string[] =>
  [...svg.matchAll(new RegExp(`<line [^>]*stroke="#ddd"/><text [^>]*text-anchor="${anchor}">([^<]+)</text>`, 'g'))].map(
    ([, text = '']) => text,
  );

describe('line charts', () => {
  it('line charts tick both axes at round numbers around all points', () => {
    const svg = chart([
      {
        name: 'api',
        points: [
          [0.02, 103],
          [1.97, 188],
        ],
      },
    ]);
    expect(ticks(svg, 'middle')).toEqual(['0', '0.5', '1', '1.5', '2']);
    expect(ticks(svg, 'end')).toEqual(['100', '120', '140', '160', '180', '200']);
  });

  it('line charts write large numbers short and never with rounding noise', () => {
    const points = [
      [0, 0],
      [0.6, 45_000_000],
    ] as const;
    const svg = chart([{ name: 'bytes', points }]);
    expect(ticks(svg, 'middle')).toEqual(['0', '0.1', '0.2', '0.3', '0.4', '0.5', '0.6']);
    expect(ticks(svg, 'end')).toEqual(['0', '10M', '20M', '30M', '40M', '50M']);
  });

  it('line charts place points in proportion, and by decades on a logarithmic axis', () => {
    const points = [
      [1, 0],
      [10, 50],
      [100, 100],
    ] as const;
    const [linear = []] = drawn(chart([{ name: 'a', points }]));
    const [log = []] = drawn(chart([{ name: 'a', points }], { log_x: true }));
    const along = (line: readonly number[][]): number =>
      ((line[1]?.[0] ?? 0) - (line[0]?.[0] ?? 0)) / ((line[2]?.[0] ?? 0) - (line[0]?.[0] ?? 0));
    expect(along(linear)).toBeCloseTo(9 / 99, 2);
    expect(along(log)).toBeCloseTo(0.5, 2);
    // Greater values are further up, which is a smaller y.
    expect(linear.map(([, y]) => y)).toEqual([...linear.map(([, y = 0]) => y)].sort((a, b) => b - a));
  });

  it('line charts tick a logarithmic axis within decades only where there are few of them', () => {
    const upTo = (most: number): string[] =>
      ticks(
        chart(
          [
            {
              name: 'a',
              points: [
                [1, 1],
                [2, most],
              ],
            },
          ],
          { log_y: true },
        ),
        'end',
      );
    expect(upTo(90)).toEqual(['1', '2', '5', '10', '20', '50', '100']);
    expect(upTo(90_000)).toEqual(['1', '10', '100', '1000', '10k', '100k']);
  });

  it('line charts break a line at a missing value, and at one that a logarithmic axis cannot show', () => {
    const points = [
      [0, 5],
      [1, 6],
      [2, NaN],
      [3, 6],
      [4, 7],
      [5, 0],
      [6, 8],
    ] as const;
    expect(drawn(chart([{ name: 'a', points }])).map((line) => line.length)).toEqual([2, 4]);
    const log = chart([{ name: 'a', points }], { log_y: true });
    expect(drawn(log).map((line) => line.length)).toEqual([2, 2]);
    // Few points are marked; the last one is visible only by its mark.
    expect(log.match(/<circle /g)).toHaveLength(5);
  });

  it('line charts name every series once in the legend, and escape every text', () => {
    const names = Array.from({ length: 20 }, (_, index) => `<process> & "${index}"`);
    const svg = lineChart({
      title: 'a < b',
      x_label: 'x & y',
      y_label: '"',
      series: names.map((name) => ({ name, points: [[0, 1]] })),
    });
    for (const index of names.keys()) expect(svg.split(`&lt;process&gt; &amp; &quot;${index}&quot;<`)).toHaveLength(2);
    expect(svg).toContain('>a &lt; b<');
    expect(svg).toContain('>x &amp; y<');
    // Once tags are removed, the rest contains no markup.
    expect(
      svg.replace(
        /<\/?[a-z]+(?: [a-z-]+="[^"<>]*"| xmlns="[^"]*"| viewBox="[^"]*"|[ a-zA-Z0-9-]+="[^"<>]*")*\/?>/g,
        '',
      ),
    ).not.toMatch(/[<>]/);
  });

  it('line charts stay inside the plot for any numbers', () => {
    const value = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(0, -0, 1e-300, 1e300, -1e300, Infinity, NaN));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(value, value), { maxLength: 20 }),
        fc.boolean(),
        fc.boolean(),
        (points, log_x, log_y) => {
          const svg = chart([{ name: 'a', points }], { log_x, log_y });
          expect(svg).not.toMatch(/NaN|Infinity/);
          const height = Number(/<svg [^>]* height="(\d+)"/.exec(svg)?.[1]);
          for (const line of drawn(svg))
            for (const [x = NaN, y = NaN] of line) {
              expect(x).toBeGreaterThanOrEqual(77.9);
              expect(x).toBeLessThanOrEqual(860.1);
              expect(y).toBeGreaterThanOrEqual(0);
              expect(y).toBeLessThanOrEqual(height);
            }
          expect(ticks(svg, 'end').length).toBeGreaterThan(1);
        },
      ),
    );
  });

  it('line charts are valid without a point', () => {
    expect(ticks(chart([]), 'end').length).toBeGreaterThan(1);
    expect(chart([{ name: 'quiet', points: [] }])).toContain('>quiet<');
  });

  it('line charts accept more points than a call takes arguments', () => {
    const points = Array.from({ length: 130_000 }, (_, index) => [index, index % 7] as const);
    expect(chart([{ name: 'many', points }]).split(',').length).toBeGreaterThan(130_000);
  });

  it('line charts end a logarithmic axis at the ticks around the points, also when a point is slightly beyond', () => {
    const points = [
      [1_020_000, 12],
      [10_020_000, 45],
    ] as const;
    const svg = chart([{ name: 'a', points }], { log_x: true, log_y: true });
    expect(ticks(svg, 'middle')).toEqual(['1M', '2M', '5M', '10M']);
    expect(ticks(svg, 'end')).toEqual(['10', '20', '50']);
  });

  it('line charts use one colour for one thing, dash the second line, and mark points only where there are few', () => {
    const flat = (name: string, of: string, length: number) => ({
      name,
      of,
      points: Array.from({ length }, (_, at): [number, number] => [at, 1]),
    });
    const svg = chart([flat('p50', 'read', 3), flat('p99', 'read', 3), flat('other', 'other', 20)]);
    const pens = [...svg.matchAll(/<polyline [^>]*stroke="([^"]+)"[^>]*?( stroke-dasharray="[^"]+")?\/>/g)].map(
      ([, colour, dash]) => [colour, dash !== undefined],
    );
    expect(pens[0]?.[0]).toBe(pens[1]?.[0]);
    expect(pens[2]?.[0]).not.toBe(pens[0]?.[0]);
    expect(pens.map(([, dashed]) => dashed)).toEqual([false, true, false]);
    expect(svg.match(/<circle /g)).toHaveLength(6);
  });
});
