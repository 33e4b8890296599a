// Token estimates are near the tokenizer's own count, and bounded in time for any text.
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, it } from 'vitest';
import { charsForTokens, estimateTokens } from '../../../pipeline/domain/text/tokens.ts';

/**
 * CPU time, so that other processes do not count; quadratic time would be minutes for texts of this
 * length.
 */
const CPU_MS_MAX = 5000;
const PROSE = 'An agent asked for the weather in Lisbon; the tool answered within 240 ms (24 degrees, sunny). ';

describe('estimateTokens', () => {
  it.each([1, 3, 20])('estimateTokens is within 3 % of the tokenizer on %i sentences', (times) => {
    const text = PROSE.repeat(times);
    const exact = countTokens(text);
    expect(Math.abs(estimateTokens(text) - exact)).toBeLessThanOrEqual(Math.max(1, exact * 0.03));
  });

  it('estimateTokens is within 5 % on a text that it samples', () => {
    const text = PROSE.repeat(3000);
    expect(Math.abs(estimateTokens(text) / countTokens(text) - 1)).toBeLessThan(0.05);
  });

  it('estimateTokens counts control tokens as text', () => {
    expect(estimateTokens('say <|endoftext|> now')).toBeGreaterThan(3);
    expect(estimateTokens('')).toBe(0);
  });

  it.each([
    ['one unbroken word', 'a'.repeat(5_000_000)],
    [
      'rare characters',
      Array.from({ length: 1_000_000 }, (_, i) => String.fromCharCode(0x4e00 + ((i * 7919) % 20_000))).join(''),
    ],
  ])('estimateTokens takes no quadratic time on megabytes of %s', (_name, text) => {
    estimateTokens('warm');
    const before = process.cpuUsage().user;
    expect(estimateTokens(text)).toBeGreaterThan(text.length / 20);
    expect((process.cpuUsage().user - before) / 1000).toBeLessThan(CPU_MS_MAX);
  });
});

describe('charsForTokens', () => {
  it('charsForTokens cuts by proportion, and never within a pair of surrogates', () => {
    expect(charsForTokens('abcdefghij', 10, 4)).toBe(4);
    expect(charsForTokens('abc', 10, 20)).toBe(3);
    expect('😀😀😀'.slice(0, charsForTokens('😀😀😀', 6, 3))).toBe('😀');
    expect(charsForTokens('abc', 3, 0)).toBe(0);
  });
});
