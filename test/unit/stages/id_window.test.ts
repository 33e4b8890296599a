import { describe, expect, it } from 'vitest';
import { IdWindow } from '../../../pipeline/stages/id_window.ts';

const HOUR_MS = 3_600_000;
const id = (n: number): string =>
  ((BigInt(n) * 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn).toString(16).padStart(16, '0');

/**
 * Returns for how many ids that were never added the window is unsure: one in two thousand for each
 * filter.
 */
function unsureOf(window: IdWindow, from: number, to: number): number {
  let unsure = 0;
  for (let n = from; n < to; n += 1) if (window.look(id(n)) === 'unsure') unsure += 1;
  return unsure;
}

describe('IdWindow', () => {
  it('the id window knows every id that was added and no other', () => {
    const window = new IdWindow(24 * HOUR_MS, 1_000_000);
    for (let n = 0; n < 50_000; n += 1) window.add(id(n), n);
    for (let n = 0; n < 50_000; n += 1) expect(window.look(id(n))).toBe('seen');
    for (let n = 50_000; n < 60_000; n += 1) expect(window.look(id(n))).toBe('new');
    expect(window.size).toBe(50_000);
  });

  it('the id window knows the id of zeros', () => {
    const window = new IdWindow(24 * HOUR_MS, 1000);
    expect(window.look('0'.repeat(16))).toBe('new');
    window.add('0'.repeat(16), 0);
    expect(window.look('0'.repeat(16))).toBe('seen');
  });

  it('the id window keeps an id for the whole window, and forgets it within a sixth of the window after', () => {
    const window = new IdWindow(24 * HOUR_MS, 1000);
    window.add(id(1), 3.9 * HOUR_MS);
    window.forget(27.8 * HOUR_MS);
    expect(window.look(id(1))).toBe('seen');
    window.forget(32 * HOUR_MS);
    expect(window.look(id(1))).toBe('new');
  });

  it('the id window is unsure, never wrong, about ids past its bound', () => {
    const window = new IdWindow(24 * HOUR_MS, 10_000);
    for (let n = 0; n < 20_000; n += 1) window.add(id(n), 1 * HOUR_MS);
    window.trim();
    for (let n = 20_000; n < 26_000; n += 1) window.add(id(n), 9 * HOUR_MS);
    window.trim();
    expect(window.isExact).toBe(false);
    expect(window.size).toBeLessThanOrEqual(10_000);
    for (let n = 0; n < 20_000; n += 1) expect(window.look(id(n))).toBe('unsure');
    for (let n = 20_000; n < 26_000; n += 1) expect(window.look(id(n))).toBe('seen');
    expect(unsureOf(window, 30_000, 40_000)).toBeLessThan(60);
    window.forget(33 * HOUR_MS);
    expect(window.look(id(1))).toBe('new');
    expect(window.look(id(20_000))).toBe('seen');
  });

  it.each([
    ['in one stretch of time', () => 9 * HOUR_MS],
    ['of all times at once, as when it is rebuilt', (n: number) => ((n * 7) % 24) * HOUR_MS],
  ])(
    'the id window stays within its bound however many ids there are %s, and the latest stay exact',
    (_what, timeOf) => {
      const bound = 4000;
      const window = new IdWindow(24 * HOUR_MS, bound);
      const count = 200_000;
      let bytesMax = 0;
      for (let n = 0; n < count; n += 1) {
        window.add(id(n), timeOf(n));
        if (n % 100 !== 99) continue;
        window.trim();
        expect(window.size).toBeLessThanOrEqual(bound + 200);
        bytesMax = Math.max(bytesMax, window.bytes);
      }
      for (let n = 0; n < count; n += 1) if (window.look(id(n)) === 'new') throw new Error(`id ${n} was forgotten`);
      for (let n = count - bound / 2; n < count; n += 1) expect(window.look(id(n))).toBe('seen');
      expect(unsureOf(window, count, count + 10_000)).toBeLessThan(300);
      // Two bytes an id in filters, the last of which is a third full at worst, and the exact
      // tables of seven generations.
      expect(bytesMax).toBeLessThan(count * 6 + 7 * 2 * 8 * 8192);
    },
  );
});

describe('ids that a caller has chosen', () => {
  const hex = (high: number, low: number): string =>
    high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');

  it('ids chosen to end in the same bits take no longer than others', () => {
    // In a table placed by the low bits these ids take quadratic time: minutes.
    const window = new IdWindow(24 * HOUR_MS, 10_000_000);
    for (let n = 0; n < 500_000; n += 1) window.add(hex(n, 0), 0);
    for (let n = 0; n < 500_000; n += 1) if (window.look(hex(n, 0)) !== 'seen') expect.unreachable();
    expect(window.look(hex(500_000, 0))).toBe('new');
  }, 60_000);

  it('ids chosen by a caller do not fill the filter so that every other id is looked up in the store', () => {
    const window = new IdWindow(24 * HOUR_MS, 10_000);
    for (let n = 0; n < 20_000; n += 1) window.add(hex(0, n * 10), HOUR_MS);
    window.trim();
    for (let n = 0; n < 6000; n += 1) window.add(id(n), 9 * HOUR_MS);
    window.trim();
    expect(window.isExact).toBe(false);
    let unsure = 0;
    for (let n = 0; n < 10_000; n += 1) if (window.look(hex(0, n * 10 + 5)) === 'unsure') unsure += 1;
    expect(unsure).toBeLessThan(60);
  });
});
