import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { traceUrl } from '../../../api/portal/web/screens/trace/trace_url.ts';
import { stepsOf } from '../../../api/portal/web/trace/model/steps.ts';
import { buildTree, isLeaf } from '../../../api/portal/web/trace/model/tree.ts';
import { buildModel } from '../../../api/portal/web/trace/model/trace_model.ts';
import { isInlineImage, safeAddress } from '../../../api/portal/web/trace/text/addresses.ts';
import { anyOutline, outlineOf, treeOf } from './trace_outlines.ts';

describe('the address of a trace', () => {
  it('names the span, the view, the tab, the find and the zoom', () => {
    const search = traceUrl.write({
      span: 'spn_1',
      view: 'graph',
      tab: 'raw',
      find: 'refund',
      zoom: { from: 1200, to: 1840.5 },
    });
    expect(search).toBe('find=refund&span=spn_1&tab=raw&view=graph&zoom=1200-1840.5');
    expect(traceUrl.parse(search).zoom).toEqual({ from: 1200, to: 1840.5 });
  });

  it('leaves out what is not changed', () => {
    expect(traceUrl.write(traceUrl.parse(''))).toBe('');
  });

  it('ignores a zoom that is no stretch of time', () => {
    for (const zoom of ['5-5', '9-1', 'a-b', '-1-4', '1e9-2e9', '1', ''])
      expect(traceUrl.parse(`zoom=${zoom}`).zoom).toBeNull();
  });

  it('reads what it wrote, and never throws', () => {
    const ms = fc.integer({ min: 0, max: 1e9 }).map((value) => value / 1000);
    const state = fc.record({
      span: fc.string(),
      view: fc.constantFrom('waterfall' as const, 'json' as const),
      tab: fc.constantFrom('messages' as const, 'scores' as const),
      find: fc.string(),
      zoom: fc.option(fc.tuple(ms, ms).map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) + 1 }))),
    });
    fc.assert(
      fc.property(state, (given) => {
        expect(traceUrl.parse(traceUrl.write(given))).toEqual(given);
      }),
    );
    fc.assert(
      fc.property(fc.string(), (search) => {
        traceUrl.parse(search);
      }),
    );
  });
});

describe('the graph of steps', () => {
  it('counts how often one step follows another', () => {
    const tree = treeOf([
      { name: 'root' },
      { name: 'plan', id: 'p1', kind: 'llm', parent: 0, start: 0, duration: 1 },
      { name: 'search', id: 's1', kind: 'tool', parent: 0, start: 1, duration: 2, outcome: 'error' },
      { name: 'plan', id: 'p2', kind: 'llm', parent: 0, start: 3, duration: 1 },
      { name: 'search', id: 's2', kind: 'tool', parent: 0, start: 4, duration: 2 },
    ]);
    const { nodes, edges } = stepsOf(tree);
    expect(nodes.map(({ spans, failed, busy }) => [spans.length, failed, busy])).toEqual([
      [2, 0, 2],
      [2, 1, 4],
    ]);
    expect(edges).toEqual([
      { from: 0, to: 1, count: 2 },
      { from: 1, to: 0, count: 1 },
    ]);
  });

  it('has each span without children in one step, and an edge for each that follows another', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        const leaves = Array.from({ length: tree.size }, (_, i) => i).filter((i) => isLeaf(tree, i));
        const { nodes, edges } = stepsOf(tree);
        expect(nodes.flatMap(({ spans }) => spans).sort((a, b) => a - b)).toEqual(leaves);
        expect(edges.reduce((sum, { count }) => sum + count, 0)).toBe(Math.max(0, leaves.length - 1));
      }),
    );
  });
});

describe('the model of a trace', () => {
  it('is computed for any outline, also an empty one', () => {
    expect(buildModel(outlineOf([])).cause).toBeNull();
    fc.assert(
      fc.property(anyOutline, (outline) => {
        expect(buildModel(outline).tree.size).toBe(outline.spans.span_id.length);
      }),
    );
  });
});

describe('addresses of texts', () => {
  it('are links for http, https and mailto only', () => {
    expect(safeAddress(' https://example.com/a ')).toBe('https://example.com/a');
    expect(safeAddress('mailto:a@example.com')).toBe('mailto:a@example.com');
    const refused = [
      'javascript:alert(1)',
      'JaVaScRiPt:alert(1)',
      'java\nscript:alert(1)',
      '\u0001javascript:alert(1)',
      'vbscript:msgbox(1)',
      'data:text/html,<script>alert(1)</script>',
      'file:///etc/passwd',
      'blob:https://example.com/1',
      '//example.com',
      '/v1/session',
      '#top',
      '',
    ];
    for (const url of refused) expect(safeAddress(url)).toBeNull();
  });

  it('are shown as images only if the text holds an image without scripts', () => {
    expect(isInlineImage('data:image/png;base64,AAAA')).toBe(true);
    for (const url of [
      'data:image/svg+xml;base64,AAAA',
      'data:image/png,<svg>',
      'https://example.com/a.png',
      'data:text/html;base64,AAAA',
    ])
      expect(isInlineImage(url)).toBe(false);
  });
});
