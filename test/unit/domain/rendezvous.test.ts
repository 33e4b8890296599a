// The decider of a key: processes that know the same members agree, and only the keys of a member
// that left move.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rankedFor } from '../../../pipeline/domain/budgets/rendezvous.ts';
import '../../support/properties.ts';

const members = fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 8 });

test('the order does not depend on the order in which the members are known', () => {
  fc.assert(
    fc.property(fc.string(), members, (key, all) => {
      const ranked = rankedFor(key, all);
      expect(rankedFor(key, [...all].reverse())).toEqual(ranked);
      expect([...ranked].sort()).toEqual([...all].sort());
    }),
  );
});

test('when a member leaves the others keep their order: only its keys move, to the next member', () => {
  fc.assert(
    fc.property(fc.string(), members, fc.nat(), (key, all, which) => {
      const gone = all[which % all.length];
      expect(
        rankedFor(
          key,
          all.filter((member) => member !== gone),
        ),
      ).toEqual(rankedFor(key, all).filter((member) => member !== gone));
    }),
  );
});

test('each of a few members is the first for its share of the keys', () => {
  const all = ['9b2f6c1e', '9b2f6c1f', '0d41aa07'];
  const firsts = Array.from({ length: 3000 }, (_, index) => rankedFor(`org_${index}`, all)[0]);
  for (const member of all) {
    const share = firsts.filter((first) => first === member).length;
    expect(share).toBeGreaterThan(850);
    expect(share).toBeLessThan(1150);
  }
});
