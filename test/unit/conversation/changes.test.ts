import fc from 'fast-check';
import '../../support/properties.ts';
import { describe, expect, it } from 'vitest';
import { changesBetween, type Compared } from '../../../pipeline/domain/conversation/changes.ts';

const list = (text: string): Compared[] =>
  Array.from(text, (key) => ({ key, role: key === key.toUpperCase() ? 'system' : 'user' }));

describe('changesBetween', () => {
  it.each([
    ['ab', 'abcd', { kept: 2, added: [2, 3], dropped: [], changed: [] }],
    ['abcd', 'ad', { kept: 2, added: [], dropped: [1, 2], changed: [] }],
    ['abd', 'acd', { kept: 2, added: [], dropped: [], changed: [{ before: 1, after: 1 }] }],
    ['aBd', 'acd', { kept: 2, added: [1], dropped: [1], changed: [] }],
    ['', 'ab', { kept: 0, added: [0, 1], dropped: [], changed: [] }],
  ])('from %j to %j', (before, after, expected) => {
    expect(changesBetween(list(before), list(after))).toEqual(expected);
  });

  it('accounts for every message of both lists exactly once', () => {
    const messages = fc
      .array(fc.constantFrom('a', 'b', 'c', 'A', 'B', 'C'), { maxLength: 30 })
      .map((keys) => list(keys.join('')));
    fc.assert(
      fc.property(messages, messages, (before, after) => {
        const { kept, added, dropped, changed } = changesBetween(before, after);
        expect(kept + dropped.length + changed.length).toBe(before.length);
        expect(kept + added.length + changed.length).toBe(after.length);
        const left = before.filter((_, at) => !dropped.includes(at) && !changed.some((one) => one.before === at));
        const right = after.filter((_, at) => !added.includes(at) && !changed.some((one) => one.after === at));
        expect(left.map(({ key }) => key)).toEqual(right.map(({ key }) => key));
        for (const pair of changed) expect(before[pair.before]?.role).toBe(after[pair.after]?.role);
      }),
    );
  });

  it('compares long lists that have nothing in common at either end in bounded time', () => {
    const long = (first: string): Compared[] => list(`${first}${'a'.repeat(20_000)}${first}`);
    expect(changesBetween(long('x'), long('y'))).toMatchObject({ kept: 20_000, changed: { length: 2 } });
  });
});
