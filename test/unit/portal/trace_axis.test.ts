import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tickName } from '../../../api/portal/web/trace/tick_name.ts';
import {
  fitTime,
  isWhole,
  makeAxis,
  panBy,
  shareOf,
  ticksOf,
  timeAt,
  unitAt,
  viewBetween,
  wholeView,
  zoomAt,
  type Axis,
} from '../../../api/portal/web/trace/model/axis.ts';

const gaps = (...pairs: [number, number][]) => ({
  from: Float64Array.from(pairs, ([from]) => from),
  to: Float64Array.from(pairs, ([, to]) => to),
});

/** Axes of up to 100 seconds with up to four folded gaps that do not overlap. */
const anyAxis = fc
  .uniqueArray(fc.integer({ min: 0, max: 100_000 }), { minLength: 2, maxLength: 10 })
  .map((points) => points.sort((a, b) => a - b))
  .map(([from = 0, ...rest]) => {
    const to = rest.pop() ?? from;
    const pairs: [number, number][] = [];
    for (let i = 0; i + 1 < rest.length; i += 2) pairs.push([rest[i] ?? 0, rest[i + 1] ?? 0]);
    return makeAxis(from, to, gaps(...pairs));
  });

const inBounds = (axis: Axis, { from, to }: { from: number; to: number }) => {
  expect(from).toBeGreaterThanOrEqual(0);
  expect(to).toBeLessThanOrEqual(axis.length * (1 + 1e-9));
  expect(to).toBeGreaterThan(from);
};

describe('the time axis', () => {
  it('is linear without folded gaps', () => {
    const axis = makeAxis(0, 1000, gaps());
    expect(unitAt(axis, 250)).toBe(250);
    expect(axis.length).toBe(1000);
  });

  it('draws a folded hour as a short break', () => {
    const axis = makeAxis(0, 3_601_000, gaps([500, 3_600_500]));
    expect(unitAt(axis, 500)).toBe(500);
    expect(axis.length - 1000).toBeLessThan(50);
    expect(axis.breaks).toHaveLength(1);
  });

  it('maps every time to one place and back', () => {
    fc.assert(
      fc.property(anyAxis, fc.double({ min: 0, max: 1, noNaN: true }), (axis, share) => {
        const unit = share * axis.length;
        expect(unitAt(axis, timeAt(axis, unit))).toBeCloseTo(unit, 4);
      }),
    );
  });

  it('keeps the order of times', () => {
    fc.assert(
      fc.property(anyAxis, fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 100_000 }), (axis, a, b) => {
        expect(unitAt(axis, Math.min(a, b))).toBeLessThanOrEqual(unitAt(axis, Math.max(a, b)));
      }),
    );
  });

  it('has a length for a trace without a duration', () => {
    const axis = makeAxis(5, 5, gaps());
    expect(axis.length).toBeGreaterThan(0);
    expect(shareOf(axis, wholeView(axis), 5)).toBe(0);
  });
});

describe('zoom and pan', () => {
  it('leave the time under the pointer where it is', () => {
    const axis = makeAxis(0, 1000, gaps());
    const view = zoomAt(axis, wholeView(axis), 4, 0.5);
    expect(view).toEqual({ from: 375, to: 625 });
    expect(zoomAt(axis, view, 0.25, 0.5)).toEqual({ from: 0, to: 1000 });
  });

  it('stop at the ends of the axis', () => {
    const axis = makeAxis(0, 1000, gaps());
    expect(panBy(axis, { from: 800, to: 1000 }, 0.5)).toEqual({ from: 800, to: 1000 });
    expect(isWhole(axis, panBy(axis, wholeView(axis), -1))).toBe(true);
  });

  it('stay within the axis after any steps', () => {
    const step = fc.oneof(
      fc.record({
        zoom: fc.double({ min: 0.01, max: 100, noNaN: true }),
        anchor: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      fc.record({ pan: fc.double({ min: -3, max: 3, noNaN: true }) }),
    );
    fc.assert(
      fc.property(anyAxis, fc.array(step, { maxLength: 12 }), (axis, steps) => {
        let view = wholeView(axis);
        for (const one of steps) {
          view = 'pan' in one ? panBy(axis, view, one.pan) : zoomAt(axis, view, one.zoom, one.anchor);
          inBounds(axis, view);
        }
      }),
    );
  });

  it('fit a span into the view with a margin', () => {
    const axis = makeAxis(0, 1000, gaps());
    const view = fitTime(axis, 400, 500);
    expect(view.from).toBeCloseTo(392);
    expect(view.to).toBeCloseTo(508);
    fc.assert(
      fc.property(anyAxis, fc.nat(100_000), fc.nat(100_000), (any, a, b) => {
        inBounds(any, fitTime(any, Math.min(a, b), Math.max(a, b)));
        inBounds(any, viewBetween(any, a, b));
      }),
    );
  });
});

describe('the name of a tick', () => {
  it.each([
    [2000, 1000, '2 s'],
    [211_450, 10, '3 m 31.45 s'],
    [1200, 200, '1.2 s'],
    [0.5, 0.5, '0.5 ms'],
  ])('has as many digits as the step to the next one needs: %d, step %d', (time, step, name) => {
    expect(tickName(time, step).replaceAll('\u00a0', ' ')).toBe(name);
  });
});

describe('ticks', () => {
  it('are round times in the view', () => {
    const axis = makeAxis(0, 1000, gaps());
    expect(ticksOf(axis, wholeView(axis), 5)).toEqual([0, 200, 400, 600, 800, 1000]);
  });

  it('skip folded gaps', () => {
    const axis = makeAxis(0, 3_601_000, gaps([500, 3_600_500]));
    for (const tick of ticksOf(axis, wholeView(axis), 8)) expect(tick <= 500 || tick >= 3_600_500).toBe(true);
  });

  it('ascend, are few and lie in the view', () => {
    fc.assert(
      fc.property(
        anyAxis,
        fc.double({ min: 1, max: 50, noNaN: true }),
        fc.integer({ min: 1, max: 20 }),
        (axis, zoom, count) => {
          const view = zoomAt(axis, wholeView(axis), zoom, 0.3);
          const ticks = ticksOf(axis, view, count);
          expect(ticks.length).toBeLessThanOrEqual(count + 1);
          const units = ticks.map((tick) => unitAt(axis, tick));
          for (const unit of units) expect(unit).toBeGreaterThanOrEqual(view.from - 1e-6);
          expect(units).toEqual([...units].sort((a, b) => a - b));
        },
      ),
    );
  });
});
