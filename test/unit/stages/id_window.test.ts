import { describe, expect, it } from 'vitest';
import { IdWindow } from '../../../pipeline/stages/dedupe/id_window.ts';

const HOUR_MS = 3_600_000;
const id = (n: number): string => ((BigInt(n) * 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn).toString(16).padStart(16, '0');

describe('IdWindow', () => {
  it('knows every id that was added and no other', () => {
    const window = new IdWindow(24 * HOUR_MS, 1_000_000);
    for (let n = 0; n < 50_000; n += 1) window.add(id(n), n);
    for (let n = 0; n < 50_000; n += 1) expect(window.look(id(n))).toBe('seen');
    for (let n = 50_000; n < 60_000; n += 1) expect(window.look(id(n))).toBe('new');
    expect(window.size).toBe(50_000);
  });

  it('knows the id of zeros', () => {
    const window = new IdWindow(24 * HOUR_MS, 1000);
    expect(window.look('0'.repeat(16))).toBe('new');
    window.add('0'.repeat(16), 0);
    expect(window.look('0'.repeat(16))).toBe('seen');
  });

  it('keeps an id for the whole window, and forgets it within a sixth of the window after', () => {
    const window = new IdWindow(24 * HOUR_MS, 1000);
    window.add(id(1), 3.9 * HOUR_MS);
    window.trim(27.8 * HOUR_MS);
    expect(window.look(id(1))).toBe('seen');
    window.trim(32 * HOUR_MS);
    expect(window.look(id(1))).toBe('new');
  });

  it('is unsure, never wrong, about ids past its bound', () => {
    const window = new IdWindow(24 * HOUR_MS, 10_000);
    for (let n = 0; n < 20_000; n += 1) window.add(id(n), 1 * HOUR_MS);
    for (let n = 20_000; n < 25_000; n += 1) window.add(id(n), 9 * HOUR_MS);
    window.trim(9 * HOUR_MS);
    expect(window.size).toBeLessThanOrEqual(10_000);
    for (let n = 0; n < 20_000; n += 1) expect(window.look(id(n))).toBe('unsure');
    for (let n = 20_000; n < 25_000; n += 1) expect(window.look(id(n))).toBe('seen');
    let unsure = 0;
    for (let n = 30_000; n < 40_000; n += 1) if (window.look(id(n)) === 'unsure') unsure += 1;
    // 14 bits an id and 10 hashes: about one in a thousand.
    expect(unsure).toBeLessThan(60);
  });
});
