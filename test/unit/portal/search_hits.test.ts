import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { groupHits, shownHits, valueCounts } from '../../../api/portal/web/screens/search/hit_groups.ts';
import { searchQueryOf, searchUrl } from '../../../api/portal/web/screens/search/search_url.ts';
import { snippetParts } from '../../../api/portal/web/screens/search/snippet_parts.ts';

const hit = (trace: number, span: number) => ({ trace_id: `t${trace}`, span_id: `s${span}`, score: 10 - span });

describe('the snippet of a hit', () => {
  it('is cut at its marks', () => {
    expect(snippetParts('a sofa please', [[2, 6]])).toEqual([
      { text: 'a ', marked: false },
      { text: 'sofa', marked: true },
      { text: ' please', marked: false },
    ]);
  });

  it('shows every character once, whatever the marks are', () => {
    const marks = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 40 })));
    fc.assert(
      fc.property(fc.string({ maxLength: 30 }), marks, (text, of_text) => {
        const shown = snippetParts(text, of_text).map((part) => part.text);
        expect(shown.join('')).toBe(text);
      }),
    );
  });
});

describe('the hits of a search', () => {
  const groups = groupHits([hit(1, 1), hit(2, 2), hit(1, 3)]);

  it('stand by trace in the order of their best hit', () => {
    expect(groups.map(({ trace_id, hits }) => [trace_id, hits.map(({ span_id }) => span_id)])).toEqual([
      ['t1', ['s1', 's3']],
      ['t2', ['s2']],
    ]);
  });

  it('show the best hit of each trace, and all of an unfolded one', () => {
    expect(shownHits(groups, new Set()).map(({ span_id }) => span_id)).toEqual(['s1', 's2']);
    expect(shownHits(groups, new Set(['t1'])).map(({ span_id }) => span_id)).toEqual(['s1', 's3', 's2']);
  });

  it('count their values, the commonest first', () => {
    expect(valueCounts(['a', null, 'b', 'b', ''])).toEqual([
      { value: 'b', hits: 2 },
      { value: 'a', hits: 1 },
    ]);
  });
});

describe('the parameters of a search', () => {
  it('are those of the address, without empty ones', () => {
    const state = searchUrl.parse('?q=+refund+&model=gpt-4o&t=1h&min_cost_usd=0.5');
    expect(searchQueryOf(state, Date.parse('2026-11-20T12:00:00.000Z'))).toEqual({
      q: 'refund',
      model: 'gpt-4o',
      min_cost_usd: '0.5',
      since: '2026-11-20T11:00:00.000Z',
    });
  });
});
