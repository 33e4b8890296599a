// Money is exact: decimal text in, decimal text out, and sums that do not depend on their order.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decimalToScaled, picoToDecimal, picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';

const pico = fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n });

describe('money', () => {
  it('money survives its decimal text', () => {
    fc.assert(
      fc.property(pico, (amount) => {
        expect(usdToPico(picoToDecimal(amount))).toBe(amount);
      }),
    );
  });

  it.each([
    [0, 0n],
    [1, 10n ** 12n],
    [0.1, 10n ** 11n],
    [1e-12, 1n],
    [1e-13, 0n],
    [5e-13, 1n],
    [4.9e-13, 0n],
    ['1e-12', 1n],
    ['2.5E+3', 2500n * 10n ** 12n],
    ['-0.5', -5n * 10n ** 11n],
    ['.5', 5n * 10n ** 11n],
    ['7.', 7n * 10n ** 12n],
    [0.0035475000000000003, 3_547_500_000n],
    ['0.0000000000005', 1n],
    [999_999, 999_999n * 10n ** 12n],
    [1e21, 10n ** 33n],
  ])('%s USD is %s pico-USD', (usd, expected) => {
    expect(usdToPico(usd)).toBe(expected);
  });

  it.each(['', '.', '-', 'abc', '1,5', '0x10', 'Infinity', 'NaN', '1e', ' 1'])('money rejects %j', (text) => {
    expect(() => usdToPico(text)).toThrow(RangeError);
  });

  it.each([
    [0n, '0.000000000000'],
    [1n, '0.000000000001'],
    [-1n, '-0.000000000001'],
    [10n ** 12n, '1.000000000000'],
    [123_456_789_012_345n, '123.456789012345'],
  ])('%s pico-USD is written %s', (amount, expected) => {
    expect(picoToDecimal(amount)).toBe(expected);
  });

  it('money is answered as the double nearest to the amount', () => {
    fc.assert(
      fc.property(pico, (amount) => {
        expect(picoToUsd(amount)).toBe(Number(picoToDecimal(amount)));
      }),
    );
  });

  it('money is scaled to the requested decimals', () => {
    expect(decimalToScaled('1.2345675', 6)).toBe(1_234_568n);
    expect(decimalToScaled('0.12', 0)).toBe(0n);
    expect(decimalToScaled('0.5', 0)).toBe(1n);
  });

  it('a hundred thousand odd prices add up to exact arithmetic', () => {
    const price = 0.1 + 0.2; // 0.30000000000000004
    let sum = 0n;
    for (let i = 0; i < 100_000; i++) sum += usdToPico(price);
    expect(picoToDecimal(sum)).toBe('30000.000000000000');
  });
});
