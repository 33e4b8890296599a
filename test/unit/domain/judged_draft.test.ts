// What judges see of a trace: which prompt and response are the trace's, in any order of its spans.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addToDraft, type DraftSpan, emptyDraft, findingOf } from '../../../pipeline/domain/judging/judged_draft.ts';

let serial = 0;
const span = (over: Partial<DraftSpan> = {}): DraftSpan => {
  serial += 1;
  return {
    place: [serial, 0, 0],
    started_at: 1000,
    ended_at: 2000,
    is_root: false,
    kind: 'event',
    model: '',
    source_format: 'custom',
    prompt: '',
    response: '',
    attributes: {},
    attribute_bytes: 0,
    ...over,
  };
};
const finding = (spans: readonly DraftSpan[]) => {
  const draft = emptyDraft();
  for (const one of spans) addToDraft(draft, one);
  return findingOf(draft);
};

describe('what judges see', () => {
  it('judges see the root’s own texts', () => {
    const root = span({
      is_root: true,
      prompt: 'rp',
      response: 'rr',
      model: 'rm',
      source_format: 'chain',
      attributes: { a: 1 },
    });
    const call = span({ kind: 'llm', started_at: 0, prompt: 'cp', response: 'cr', model: 'cm' });
    expect(finding([call, root])).toEqual({
      asked: [],
      answered: [],
      prompt: 'rp',
      response: 'rr',
      model: 'rm',
      source_format: 'chain',
      attributes: { known: { a: 1 } },
    });
  });

  it("judges see the first and the last model call's texts where the root has none", () => {
    const root = span({ is_root: true, source_format: 'app', attributes: { root: true } });
    const first = span({
      kind: 'llm',
      started_at: 1100,
      ended_at: 1900,
      prompt: 'first',
      response: 'early',
      model: 'm1',
    });
    const last = span({
      kind: 'llm',
      started_at: 1200,
      ended_at: 1950,
      prompt: 'second',
      response: 'late',
      model: 'm2',
    });
    const tool = span({ kind: 'tool', started_at: 1050, ended_at: 1990, prompt: 'tool', response: 'result' });
    expect(finding([root, last, tool, first])).toEqual({
      asked: [],
      answered: [],
      prompt: 'first',
      response: 'late',
      model: 'm2',
      source_format: 'app',
      attributes: { known: { root: true } },
    });
  });

  it('judges see the texts of any span where no model was called, and none where none has any', () => {
    const tool = span({
      kind: 'tool',
      started_at: 5,
      ended_at: 9,
      prompt: 'tp',
      response: 'tr',
      attributes: { first: true },
    });
    const other = span({ kind: 'event', started_at: 6, ended_at: 8, prompt: 'ep', response: 'er' });
    expect(finding([other, tool])).toMatchObject({
      prompt: 'tp',
      response: 'tr',
      attributes: { known: { first: true } },
    });
    expect(finding([])).toEqual({
      asked: [],
      answered: [],
      prompt: '',
      response: '',
      model: '',
      source_format: '',
      attributes: { known: {} },
    });
  });

  it('texts in the store are named by their position', () => {
    const stored = span({ kind: 'llm', place: [7, 1, 2], prompt: null, response: null, attributes: null });
    expect(finding([stored])).toMatchObject({
      prompt: { stored: [7, 1, 2] },
      response: { stored: [7, 1, 2] },
      attributes: { stored: [7, 1, 2] },
    });
  });

  it('the result does not depend on the order of spans', () => {
    const text = fc.constantFrom('', 'x', 'y', null);
    const some = fc.record({
      started_at: fc.integer({ min: 0, max: 3 }),
      ended_at: fc.integer({ min: 3, max: 6 }),
      is_root: fc.boolean(),
      kind: fc.constantFrom('llm' as const, 'tool' as const, 'event' as const),
      model: fc.constantFrom('', 'm1', 'm2'),
      prompt: text,
      response: text,
    });
    fc.assert(
      fc.property(fc.array(some, { maxLength: 8 }), fc.infiniteStream(fc.nat()), (given, keys) => {
        const spans = given.map((one, index) => span({ ...one, place: [index, 0, 0] }));
        const order = [...keys.take(spans.length)];
        const shuffled = spans.map((one, index) => ({ one, key: order[index] ?? 0 })).toSorted((a, b) => a.key - b.key);
        expect(finding(shuffled.map(({ one }) => one))).toEqual(finding(spans));
      }),
    );
  });
});
