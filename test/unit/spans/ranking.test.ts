import { expect, it } from 'vitest';
import { newestSegments } from '../../../api/telemetry/spans/postings/segment_loader.ts';
import { PostingList } from '../../../api/telemetry/spans/postings/posting_lists.ts';
import {
  Best,
  documentFrequency,
  isBefore,
  type Postings,
  type Ranked,
  rankSegment,
  type ScoredSegment,
} from '../../../api/telemetry/spans/postings/ranking.ts';
import { documentsOf, lengthsWithin, type Segment } from '../../../api/telemetry/spans/postings/segments.ts';
import { inverseDocumentFrequency, termScore, termScoreMax } from '../../../pipeline/domain/text/bm25.ts';
import { seeded } from '../../support/store.ts';

const random = seeded(3);
const draw = (below: number): number => Math.floor(random() * below);

const ranked = (over: Partial<Ranked>): Ranked => ({ score: 1, time: 0, segment: 1, place: 0, ...over });

it('the best documents are the first of all in order, whatever the order in which they come', () => {
  for (const max of [1, 2, 7, 50, 500]) {
    const all = Array.from({ length: 300 }, (_, place) =>
      ranked({ score: draw(20), time: draw(3), segment: draw(2), place }),
    );
    const best = new Best(max);
    for (const one of all) best.add(one);
    expect(best.sorted()).toEqual(all.toSorted((a, b) => (isBefore(a, b) ? -1 : 1)).slice(0, max));
    expect(best.threshold).toBe(max > 300 ? -Infinity : best.sorted().at(-1)?.score);
  }
});

it('equal scores rank the newest first, and equal times by number', () => {
  const order = [ranked({ score: 2 }), ranked({ time: 5 }), ranked({ place: 1 }), ranked({ segment: 2 })];
  for (const [index, one] of order.entries())
    for (const other of order.slice(index + 1))
      expect([isBefore(one, other), isBefore(other, one)]).toEqual([true, false]);
});

const FIRST = 100;

/** A segment with random documents, of which some are not the organization's. */
function aSegment(words: number): ScoredSegment {
  const size = 200;
  const lengths = Uint16Array.from({ length: size }, () => (random() < 0.3 ? 0 : 1 + draw(90)));
  const starts = Uint32Array.from({ length: size }, () => draw(5));
  const postings = Array.from({ length: words }, (): Postings | null => {
    if (random() < 0.1) return null;
    const places = Uint16Array.from([...lengths.keys()].filter(() => random() < 0.4).map((at) => at + FIRST));
    return { places, counts: random() < 0.5 ? null : places.map(() => 1 + draw(9)) };
  });
  const allowed = random() < 0.5 ? null : Uint8Array.from(lengths, () => draw(2));
  return { segment: 9, first: FIRST, lengths, starts, from_ms: 1000, allowed, postings };
}

it('a segment is ranked as BM25 is defined', () => {
  for (let round = 0; round < 60; round++) {
    const words = Array.from({ length: 1 + draw(4) }, () => ({ df: 1 + draw(500), required: random() < 0.3 }));
    const segment = aSegment(words.length);
    const { lengths, starts, postings, allowed } = segment;
    const avgdl = 1 + draw(100);
    const expected = [...lengths.entries()].flatMap(([at, dl]) => {
      const counts = postings.map((list) => {
        const index = list?.places.indexOf(at + FIRST) ?? -1;
        return index === -1 ? 0 : (list?.counts?.[index] ?? 1);
      });
      const fits =
        dl > 0 &&
        (allowed === null || allowed[at] === 1) &&
        words.every(({ required }, n) => !required || (counts[n] ?? 0) > 0);
      const score = counts.reduce(
        (sum, tf, n) => sum + termScore(inverseDocumentFrequency(1000, words[n]?.df ?? 0), tf, dl, avgdl),
        0,
      );
      return fits && score > 0 ? [{ score, time: 1000 + (starts[at] ?? 0), segment: 9, place: at + FIRST }] : [];
    });
    const best = new Best(30);
    const weighted = words.map(({ df, required }) => ({
      weight: termScoreMax(inverseDocumentFrequency(1000, df)),
      required,
    }));
    expect(rankSegment(segment, weighted, avgdl, best)).toBe(expected.length);
    const found = best.sorted();
    const wanted = expected.toSorted((a, b) => b.score - a.score).slice(0, 30);
    expect(found.map(({ score }) => score)).toEqual(wanted.map(({ score }) => expect.closeTo(score, 9) as number));
    for (const one of found) expect(expected).toContainEqual({ ...one, score: expect.closeTo(one.score, 9) as number });
  }
});

const segmentOf = (over: Partial<Segment>): Segment => ({
  segment: 1,
  documents: 3,
  words: 9,
  version: '',
  first: 10,
  last: 20,
  from_ms: 5000,
  to_ms: 9000,
  ...over,
});

it('documents of a segment are held by place, and those outside of a period have no length', () => {
  const segment = segmentOf({});
  const documents = documentsOf(
    segment,
    Uint16Array.of(20, 10, 13),
    Uint32Array.of(7, 2, 0),
    Float64Array.of(9000, 5000, 7000),
  );
  expect([...documents.lengths]).toEqual([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
  expect(lengthsWithin(segment, documents, { since: 5000, until: 9000 })).toBe(documents.lengths);
  expect([...lengthsWithin(segment, documents, { since: 5001 })].at(0)).toBe(0);
  expect([...lengthsWithin(segment, documents, { until: 8999 })].at(-1)).toBe(0);
  expect(documentFrequency({ places: Uint16Array.of(10, 13, 20), counts: null }, 10, documents.lengths)).toBe(2);
});

it('documents of any length and distance in time are held exactly', () => {
  const segment = segmentOf({ first: 0, last: 1, from_ms: -8e13, to_ms: 8e13 });
  const documents = documentsOf(
    segment,
    Uint16Array.of(0, 1),
    Uint32Array.of(4_000_000_000, 1),
    Float64Array.of(-8e13, 8e13),
  );
  expect([...documents.lengths]).toEqual([4_000_000_000, 1]);
  expect([...documents.starts]).toEqual([0, 16e13]);
});

it('postings of an organization are gathered from rows of all organizations', () => {
  const documents = documentsOf(
    segmentOf({}),
    Uint16Array.of(10, 12, 20),
    Uint32Array.of(1, 1, 1),
    new Float64Array(3),
  );
  const list = new PostingList(documents);
  expect(list.postings()).toBeNull();
  expect(list.add(Uint16Array.of(3, 11, 21, 65_535), Uint16Array.of())).toBe(0);
  expect(list.postings()).toBeNull();
  expect(list.add(Uint16Array.of(9, 10), Uint16Array.of(8, 1))).toBe(1);
  expect(list.postings()).toEqual({ places: Uint16Array.of(10), counts: null });
  expect(list.add(Uint16Array.of(20, 19, 12), Uint16Array.of(4, 5, 6))).toBe(2);
  expect(list.postings()).toEqual({ places: Uint16Array.of(10, 20, 12), counts: Uint8Array.of(1, 4, 6) });
  expect(list.add(Uint16Array.of(20), Uint16Array.of(256))).toBe(1);
  expect(list.postings()?.counts).toEqual(Uint16Array.of(1, 4, 6, 256));
});

it('the newest segments are taken up to a number of documents, at least one', () => {
  const segments = [5, 1, 4].map((documents) => segmentOf({ documents }));
  expect(newestSegments(segments, 10)).toHaveLength(3);
  expect(newestSegments(segments, 9)).toHaveLength(2);
  expect(newestSegments(segments, 5)).toHaveLength(1);
  expect(newestSegments(segments, 1)).toHaveLength(1);
});
