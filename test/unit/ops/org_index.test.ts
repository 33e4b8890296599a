// The index by organization over a watched bucket.
import { expect, test } from 'vitest';
import { OrgIndex } from '../../../ops/platform/nats/org_index.ts';
import type { BucketEntry } from '../../../ops/platform/nats/watched_bucket.ts';

type Listener = (key: string, held: BucketEntry<number> | null) => void;

const held = (value: number): BucketEntry<number> => ({ value, revision: value, moved_at: 0 });

function aBucket(entries: Record<string, number>) {
  const listeners: Listener[] = [];
  return {
    entries: () => new Map(Object.entries(entries).map(([key, value]) => [key, held(value)])).entries(),
    onChange: (listener: Listener) => {
      listeners.push(listener);
      return () => undefined;
    },
    set: (key: string, value: number | null) => {
      for (const listener of listeners) listener(key, value === null ? null : held(value));
    },
  };
}

const recordsOf = (index: OrgIndex<number>, org_id: string) => Object.fromEntries(index.of(org_id));

test('the index holds what the bucket held when it was built, by organization', () => {
  const index = new OrgIndex(aBucket({ 'org_a.1': 1, 'org_a.2': 2, 'org_b.1': 3 }));
  expect(recordsOf(index, 'org_a')).toEqual({ 'org_a.1': 1, 'org_a.2': 2 });
  expect(recordsOf(index, 'org_b')).toEqual({ 'org_b.1': 3 });
  expect(index.of('org_c').size).toBe(0);
});

test('an organization id with dots is found by its escaped token, and is no prefix of another one', () => {
  const index = new OrgIndex(aBucket({ 'a=2Eb.1': 1, 'a.b.1': 2 }));
  expect(recordsOf(index, 'a.b')).toEqual({ 'a=2Eb.1': 1 });
  expect(recordsOf(index, 'a')).toEqual({ 'a.b.1': 2 });
});

test('a change replaces the record, and the last deletion forgets the organization', () => {
  const bucket = aBucket({});
  const index = new OrgIndex(bucket);
  bucket.set('org_a.1', 1);
  bucket.set('org_a.2', 2);
  bucket.set('org_a.1', 3);
  expect(recordsOf(index, 'org_a')).toEqual({ 'org_a.1': 3, 'org_a.2': 2 });
  bucket.set('org_a.1', null);
  bucket.set('org_a.2', null);
  bucket.set('org_a.2', null);
  expect(index.of('org_a').size).toBe(0);
});
