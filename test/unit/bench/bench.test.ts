import { describe, expect, it } from 'vitest';
import { batchBody, singleBody } from '../../bench/bodies.ts';
import { threadsBetween } from '../../bench/processes.ts';
import { markdownTable, percentile, slope } from '../../bench/report.ts';
import { seededRandom, Vocabulary, VOCABULARY_SIZE, wordOf } from '../../bench/vocabulary.ts';
import { checkEvent, splitBody } from '../../../schemas/formats/formats.ts';

describe('vocabulary', () => {
  it('the vocabulary has a word of its own for every rank, of letters only', () => {
    const words = Array.from({ length: VOCABULARY_SIZE }, (_, rank) => wordOf(rank));
    expect(new Set(words).size).toBe(VOCABULARY_SIZE);
    expect(words.every((word) => /^[a-z]+$/.test(word))).toBe(true);
  });

  it("the vocabulary draws common words as often as Zipf's law says", () => {
    const vocabulary = new Vocabulary(1000);
    const random = seededRandom(1);
    const draws = 200_000;
    const counts = new Map<number, number>();
    for (let i = 0; i < draws; i += 1) {
      const rank = vocabulary.draw(random);
      counts.set(rank, (counts.get(rank) ?? 0) + 1);
    }
    const total = Array.from({ length: 1000 }, (_, rank) => (rank + 1) ** -1.03).reduce(
      (sum, weight) => sum + weight,
      0,
    );
    for (const rank of [0, 1, 9, 99])
      expect((counts.get(rank) ?? 0) / draws).toBeCloseTo((rank + 1) ** -1.03 / total, 2);
  });

  it('the vocabulary gives the same text for the same seed', () => {
    const vocabulary = new Vocabulary(1000);
    expect(vocabulary.text(40, seededRandom(5))).toBe(vocabulary.text(40, seededRandom(5)));
  });
});

describe('bodies', () => {
  const vocabulary = new Vocabulary(20_000);

  it('bodies are batches of 200 valid events of about 1.5 KB, in traces with one root each', () => {
    const body = batchBody('texts', vocabulary, seededRandom(2));
    body.stamp(77);
    const split = splitBody('custom', JSON.parse(body.bytes.toString('utf8')));
    if (!split.ok) throw new Error(split.message);
    expect(split.events).toHaveLength(200);
    for (const event of split.events) expect(checkEvent('custom', event)).toMatchObject({ ok: true });
    expect(body.bytes.length / 200).toBeGreaterThan(1350);
    expect(body.bytes.length / 200).toBeLessThan(1650);
    const events = split.events as { trace_id: string; span_id: string; parent_span_id?: string }[];
    const roots = events.filter((event) => event.parent_span_id === undefined);
    expect(roots).toHaveLength(new Set(events.map((event) => event.trace_id)).size);
    const rootOf = new Map(roots.map((root) => [root.trace_id, root.span_id]));
    for (const event of events)
      if (event.parent_span_id !== undefined) expect(rootOf.get(event.trace_id)).toBe(event.parent_span_id);
  });

  it('bodies of two numbers share no id', () => {
    const body = batchBody('plain', vocabulary, seededRandom(3));
    const ids = (value: number): Set<string> => {
      body.stamp(value);
      return new Set(body.bytes.toString('utf8').match(/(trc|spn)_[0-9a-f]{16}/g));
    };
    const [first, second] = [ids(1), ids(2)];
    expect(first.size).toBe(217);
    expect([...first].filter((value) => second.has(value))).toEqual([]);
  });

  it('bodies are valid model calls of one size, whatever the number', () => {
    const body = singleBody(vocabulary, seededRandom(4));
    const length = body.bytes.length;
    body.stamp(2 ** 39);
    expect(body.bytes.length).toBe(length);
    expect(checkEvent('chatcompletion', JSON.parse(body.bytes.toString('utf8')))).toMatchObject({ ok: true });
  });
});

describe('processes', () => {
  it('the time of threads is added up by part and name, without what they had used before', () => {
    const use = (thread: string, cpu_s: number) => ({ part: 'worker', thread, cpu_s });
    const before = [use('main', 2), use('pool', 1), use('idle', 3)];
    const after = [use('main', 5), use('pool', 2), use('pool', 4), use('idle', 3), { ...use('main', 1), part: 'api' }];
    expect(threadsBetween(before, after)).toEqual([use('main', 3), use('pool', 5), { ...use('main', 1), part: 'api' }]);
  });
});

describe('report', () => {
  it('the report computes percentiles and slopes', () => {
    expect(percentile([4, 1, 3, 2], 0.5)).toBe(2.5);
    expect(percentile([], 0.5)).toBeNaN();
    expect(
      slope([
        [0, 10],
        [1, 12],
        [2, 14],
      ]),
    ).toBeCloseTo(2);
    expect(slope([[0, 1]])).toBe(0);
  });

  it('the report aligns a table', () => {
    expect(markdownTable(['a', 'bb'], [['ccc', 'd']])).toBe('| a   | bb |\n|-----|----|\n| ccc | d  |');
  });
});
