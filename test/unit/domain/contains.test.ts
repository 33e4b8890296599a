// The search for a fixed text agrees with the engine's own, and its time is linear.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { containing } from '../../../pipeline/domain/text/contains.ts';

describe('a search for a text', () => {
  it("a search for a text agrees with the language's own", () => {
    const ab = fc.stringMatching(/^[ab]{0,60}$/);
    fc.assert(
      fc.property(
        fc.oneof(ab, fc.string()),
        fc.oneof(ab, fc.string({ minLength: 33, maxLength: 60 })),
        ab,
        (before, value, after) => {
          for (const text of [before + value + after, before + value.slice(1) + after, value.slice(0, -1), before, ''])
            expect(containing(value)(text)).toBe(text.includes(value));
        },
      ),
    );
  });

  it.each([
    ['a repeated beginning', `${'a'.repeat(5000)}b${'a'.repeat(4999)}`, 'a'.repeat(5_000_000)],
    ['a period that is broken once', `aa${'ab'.repeat(4999)}`, 'ab'.repeat(2_500_000)],
  ])(
    'a search for a text takes linear time for %s',
    (_what, value, text) => {
      // The engine's own search takes 6 to 8 s for each of these, and a trace may meet forty.
      const test = containing(value);
      for (let time = 0; time < 40; time++) expect(test(text)).toBe(false);
    },
    60_000,
  );
});
