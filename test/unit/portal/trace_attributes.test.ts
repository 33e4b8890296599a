// The attributes of a span as rows, and the lists of traces that they lead to.
import { describe, expect, it } from 'vitest';
import { filterQuery } from '../../../api/portal/web/lists/list_query.ts';
import { parseListUrl } from '../../../api/portal/web/lists/list_url.ts';
import { attributeRows, filteredListPath } from '../../../api/portal/web/screens/trace/attribute_rows.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const rowsOf = (attributes: Record<string, unknown>) =>
  attributeRows({
    tags: ['prod', 'a,b'],
    agent_id: null,
    source_format: 'custom',
    price_source: null,
    event_id: 'evt_1',
    attributes,
  });
const filterOf = (attributes: Record<string, unknown>, path: string) =>
  rowsOf(attributes).find((row) => row.path === path)?.filter;

describe('the attributes of a span', () => {
  it('are flat, with the keys of nested objects in the path, and without empty values', () => {
    expect(
      rowsOf({ region: 'eu', http: { status: 500, body: '' }, list: [1, 2] }).map((row) => [row.path, row.value]),
    ).toEqual([
      ['tags', 'prod, a,b'],
      ['source_format', 'custom'],
      ['event_id', 'evt_1'],
      ['region', 'eu'],
      ['http.status', '500'],
      ['list', '[1,2]'],
    ]);
  });

  it('filter the list where they are a text, a number or a flag', () => {
    const attributes = {
      a: 'x',
      b: 7,
      c: true,
      d: null,
      e: [1],
      f: ' ',
      g: 'x'.repeat(600),
      h: { 'gen_ai.system': 'y' },
    };
    expect(filterOf(attributes, 'a')).toEqual({ name: 'attributes.a', values: ['x'] });
    expect(filterOf(attributes, 'b')).toEqual({ name: 'attributes.b', values: ['7'] });
    expect(filterOf(attributes, 'c')).toEqual({ name: 'attributes.c', values: ['true'] });
    expect(filterOf(attributes, 'h.gen_ai.system')).toEqual({ name: 'attributes.h.gen_ai.system', values: ['y'] });
    for (const path of ['d', 'e', 'f', 'g', 'event_id']) expect(filterOf(attributes, path) ?? null).toBeNull();
  });

  it('filter nothing where the API takes no such path', () => {
    expect(filterOf({ '': 'x', 'a..b': 'x', [`k${'.k'.repeat(8)}`]: 'x', ['k'.repeat(300)]: 'x' }, 'a..b')).toBeNull();
    expect(
      rowsOf({ '': 'x', 'a..b': 'x', [`k${'.k'.repeat(8)}`]: 'x', ['k'.repeat(300)]: 'x' }).filter(
        ({ filter, path }) => filter !== null && !['tags', 'source_format'].includes(path),
      ),
    ).toEqual([]);
  });
});

describe('the list that an attribute leads to', () => {
  const pathOf = (startedAt: string) =>
    filteredListPath('org_1', { name: 'attributes.shop region', values: ['eu, west'] }, startedAt, NOW);

  it('holds the filter as the list and the API read it', () => {
    const read = parseListUrl(new URL(pathOf('2026-11-23T11:00:00Z'), 'http://portal').search);
    expect([...read.filters]).toEqual([['attributes.shop region', ['eu, west']]]);
    expect(filterQuery(read, NOW)['attributes.shop region']).toBe(String.raw`eu\, west`);
    expect(read.rest).toEqual([]);
  });

  it('covers the time of the trace', () => {
    const timeOf = (startedAt: string) => parseListUrl(new URL(pathOf(startedAt), 'http://portal').search).time;
    expect(timeOf('2026-11-23T11:00:00Z')).toEqual({ last: '24h' });
    expect(timeOf('2026-11-20T11:00:00Z')).toEqual({ last: '7d' });
    expect(timeOf('2026-09-20T11:00:00Z')).toEqual({ last: '90d' });
    expect(timeOf('2026-01-20T11:00:00Z')).toEqual({ since: '2026-01-19T11:00:00.000Z', until: null });
  });
});
