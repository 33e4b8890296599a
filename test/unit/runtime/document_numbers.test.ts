// Numbers of documents: 65536 times a segment plus a place in it.
import { describe, expect, it } from 'vitest';
import {
  DocumentNumbers,
  firstSegmentOf,
  SEGMENT_DOCS,
  segmentsOf,
} from '../../../pipeline/landing/document_numbers.ts';

const SEGMENT = BigInt(SEGMENT_DOCS);

describe('document numbers', () => {
  it('are consecutive as long as a segment can hold them', () => {
    const numbers = new DocumentNumbers(3);
    const first = firstSegmentOf(3) * SEGMENT;
    expect([numbers.take(10), numbers.take(0), numbers.take(SEGMENT_DOCS - 10)]).toEqual([
      first,
      first + 10n,
      first + 10n,
    ]);
    expect(numbers.take(1)).toBe(first + SEGMENT);
  });

  it('begin another segment if the present one cannot hold all of a part', () => {
    const numbers = new DocumentNumbers(3);
    const first = numbers.take(1);
    expect(numbers.take(SEGMENT_DOCS)).toBe(first + SEGMENT);
    expect(numbers.take(1)).toBe(first + 2n * SEGMENT);
  });

  it('run over as many segments as a part needs, and the next part shares the last of them', () => {
    const numbers = new DocumentNumbers(3);
    const first = numbers.take(3 * SEGMENT_DOCS + 5);
    expect(segmentsOf(first, 3 * SEGMENT_DOCS + 5)).toEqual(
      [0n, 1n, 2n, 3n].map((segment) => firstSegmentOf(3) + segment),
    );
    expect(numbers.take(1)).toBe(first + 3n * SEGMENT + 5n);
  });

  it('are never those of another epoch, or of older texts', () => {
    const numbers = [new DocumentNumbers(3), new DocumentNumbers(3, 'older'), new DocumentNumbers(4)];
    const taken = numbers.flatMap((of) => [of.take(10 * SEGMENT_DOCS), of.take(1)]);
    expect(taken).toEqual(taken.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(new Set(taken.map((number) => number / SEGMENT)).size).toBe(taken.length);
    expect(new DocumentNumbers(2 ** 28 - 1, 'older').take(1)).toBeLessThan(2n ** 64n);
  });
});

describe('segments of a range of numbers', () => {
  it.each([
    [0n, 0, []],
    [5n, 1, [0n]],
    [SEGMENT - 1n, 1, [0n]],
    [SEGMENT - 1n, 2, [0n, 1n]],
    [SEGMENT, SEGMENT_DOCS, [1n]],
    [SEGMENT, SEGMENT_DOCS + 1, [1n, 2n]],
  ])('from %s, %s numbers: %s', (first, documents, segments) => {
    expect(segmentsOf(first, documents)).toEqual(segments);
  });
});
