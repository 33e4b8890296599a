import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluate, FORMULA_CHARS_MAX, parseFormula } from '../../../pipeline/domain/stats/formula.ts';

const valueOf = (text: string, amounts: Record<string, number> = {}): number | null => {
  const parsed = parseFormula(text);
  if (!parsed.ok) throw new Error(`${text}: ${parsed.message}`);
  return evaluate(parsed.formula, new Map(Object.entries(amounts)));
};
const refusal = (text: string): string => {
  const parsed = parseFormula(text);
  return parsed.ok ? 'taken' : parsed.message;
};

describe('value of outcomes', () => {
  it('a formula is arithmetic over names', () => {
    expect(valueOf('tickets * 12.5 + leads * 40', { tickets: 4, leads: 3 })).toBe(170);
    expect(valueOf('2 + 3 * 4 - 6 / 2')).toBe(11);
    expect(valueOf('(2 + 3) * -(4 - 6) / 2')).toBe(5);
    expect(valueOf('a--b', { a: 1, b: 2 })).toBe(3);
    expect(valueOf('1.5e2 + .5')).toBe(150.5);
  });

  it('a formula counts a name without an amount as 0, whatever objects inherit', () => {
    expect(valueOf('constructor + toString + x', { x: 2 })).toBe(2);
  });

  it('a formula has no value after a division by zero or beyond any number', () => {
    expect(valueOf('1 / x')).toBeNull();
    expect(valueOf('0 * (1 / (x - x))', { x: 3 })).toBeNull();
    expect(valueOf('x * x', { x: 1e200 })).toBeNull();
  });

  it.each([
    ['', 'is empty'],
    ['  ', 'is empty'],
    ['a +', 'position 4: Expected expression after +'],
    ['(a', 'position 3: Unclosed ('],
    ['a b', 'an operator is missing'],
    ['()', 'no value at all'],
    ['alert(1)', 'alert: nothing can be called'],
    ['(a)(b)', 'a: nothing can be called'],
    ['a.b', 'a.b: a name holds no dot'],
    ['a.constructor.constructor', 'a.constructor.constructor: a name holds no dot'],
    ['this', 'this: is not a name'],
    ['true + 1', 'true: is not a finite number'],
    ['null', 'null: is not a finite number'],
    ['__proto__ * 2', '__proto__: is not a name'],
    ['1e999', '1e999: is not a finite number'],
    ['a ** 2', '**: is not an operator'],
    ['+a', '+: is not an operator before a value'],
    ['a["b"]', 'position 2: accepts numbers'],
    ["'a'", 'position 1: accepts numbers'],
    ['`a`', 'position 1: accepts numbers'],
    ['a ? b : c', 'position 3: accepts numbers'],
    ['a, b', 'position 2: accepts numbers'],
    ['a; b', 'position 2: accepts numbers'],
    ['a = 1', 'position 3: accepts numbers'],
    ['größe * 2', 'position 3: accepts numbers'],
    ['a * 💰', 'position 5: accepts numbers'],
    ['a\u0000', 'position 2: accepts numbers'],
    ['0x10', 'position'],
    ['1a', 'position'],
    ['a%b', 'position 2: accepts numbers'],
  ])('a formula is rejected: %j: %s', (text, message) => {
    expect(refusal(text)).toContain(message);
  });

  it('a formula that is too long, too deep or too large is rejected', () => {
    expect(refusal(`1${' '.repeat(FORMULA_CHARS_MAX)}`)).toContain('is longer than');
    expect(refusal(`${'('.repeat(51)}1${')'.repeat(51)}`)).toContain('position 51: parentheses are nested');
    expect(valueOf(`${'('.repeat(50)}1${')'.repeat(50)}`)).toBe(1);
    expect(refusal(Array.from({ length: 300 }, () => 'a').join('+'))).toContain('has more than 400');
    expect(valueOf(Array.from({ length: 200 }, () => 'a').join('+'), { a: 1 })).toBe(200);
    expect(refusal(`${'-'.repeat(999)}1`)).toContain('has more than 400');
  });

  it('a formula never throws, whatever its text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 200 }), fc.stringMatching(/^[a-c0-9.+\-*/() ]{0,60}$/)), (text) => {
        const parsed = parseFormula(text);
        if (!parsed.ok) return parsed.message !== '';
        const value = evaluate(parsed.formula, new Map([['a', 2]]));
        return value === null || Number.isFinite(value);
      }),
      { numRuns: 2000 },
    );
  });

  it('a formula gives the result of the same arithmetic in the language', () => {
    interface Term {
      text: string;
      value: (a: number, b: number) => number;
    }
    const operators: Record<string, (left: number, right: number) => number> = {
      '+': (left, right) => left + right,
      '-': (left, right) => left - right,
      '*': (left, right) => left * right,
    };
    const leaf = fc.constantFrom<Term>(
      { text: 'a', value: (a) => a },
      { text: 'b', value: (_a, b) => b },
      { text: '0.25', value: () => 0.25 },
    );
    const { term } = fc.letrec<{ term: Term }>((tie) => ({
      term: fc.oneof(
        { maxDepth: 5, depthSize: 'large' },
        leaf,
        tie('term').map(({ text, value }): Term => ({ text: `-(${text})`, value: (a, b) => -value(a, b) })),
        fc.tuple(tie('term'), fc.constantFrom('+', '-', '*'), tie('term')).map(([left, operator, right]): Term => ({
          text: `(${left.text} ${operator} ${right.text})`,
          value: (a, b) => operators[operator]?.(left.value(a, b), right.value(a, b)) ?? NaN,
        })),
      ),
    }));
    const amount = fc.integer({ min: -50, max: 50 });
    fc.assert(
      fc.property(term, amount, amount, ({ text, value }, a, b) => {
        fc.pre(text.length <= FORMULA_CHARS_MAX);
        expect(valueOf(text, { a, b })).toBe(value(a, b));
      }),
    );
  });

  it('a formula knows operator precedence, and evaluates from left to right', () => {
    expect(valueOf('1 - 2 - 3 * 4 / 2 * 5 + 1')).toBe(1 - 2 - ((3 * 4) / 2) * 5 + 1);
    expect(valueOf('-a * b', { a: 2, b: 3 })).toBe(-6);
    expect(valueOf('8 / 4 / 2')).toBe(1);
  });
});
