import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Bag } from '../../../ops/platform/bag.ts';

test('a bag holds the members that were added and not removed, and uses their places again', () => {
  const steps = fc.array(fc.oneof(fc.constant('add' as const), fc.nat(20)), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (sequence) => {
      const bag = new Bag<{ id: number }>();
      const held: { member: { id: number }; place: number }[] = [];
      let most = 0;
      for (const [id, step] of sequence.entries()) {
        if (step === 'add') {
          const member = { id };
          held.push({ member, place: bag.add(member) });
          most = Math.max(most, held.length);
        } else if (held.length > 0) {
          const [removed] = held.splice(step % held.length, 1);
          if (removed !== undefined) bag.remove(removed.place);
        }
        expect(bag.size).toBe(held.length);
      }
      const ids = (members: Iterable<{ id: number }>) => [...members].map(({ id }) => id).sort((a, b) => a - b);
      expect(ids(bag)).toEqual(ids(held.map(({ member }) => member)));
      expect(held.every(({ place }) => place < most)).toBe(true);
    }),
  );
});

test('members may be removed while they are read', () => {
  const bag = new Bag<{ place: number }>();
  for (let i = 0; i < 3; i++) {
    const member = { place: -1 };
    member.place = bag.add(member);
  }
  const read = [];
  for (const member of bag) {
    read.push(member.place);
    bag.remove(member.place);
  }
  expect([read, bag.size, [...bag]]).toEqual([[0, 1, 2], 0, []]);
});
