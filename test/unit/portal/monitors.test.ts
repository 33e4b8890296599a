// The pure parts of the screens of monitors: drafts and their requests, addresses that begin a monitor,
// and words.
import { describe, expect, it } from 'vitest';
import {
  bodyOf,
  draftFrom,
  draftOf,
  EMPTY_DRAFT,
  missingIn,
  type Monitor,
} from '../../../api/portal/web/screens/monitors/draft.ts';
import { newMonitorHref } from '../../../api/portal/web/screens/monitors/new_monitor_href.ts';
import { monitorFromList } from '../../../api/portal/web/screens/monitors/from_list.ts';
import { formatOf, measureWords, thresholdWords } from '../../../api/portal/web/screens/monitors/monitor_words.ts';

const MONITOR: Monitor = {
  monitor_id: 'mon_1',
  name: 'Slow calls',
  query: {
    view: 'spans',
    measures: [{ measure: 'duration_ms', agg: 'p95' }],
    group_by: ['model'],
    filters: [
      { field: 'kind', op: 'eq', value: 'llm' },
      { field: 'duration_ms', op: 'gte', value: 10 },
      { field: 'tag', op: 'not_in', value: ['a', 'b'] },
      { field: 'attributes.region', op: 'exists', value: true },
    ],
  },
  group_by: ['model'],
  window_minutes: 15,
  threshold: { above: 8000 },
  for_minutes: 5,
  channels: [
    { type: 'webhook', webhook_id: 'wh_1' },
    { type: 'email', to: ['a@example.com', 'b@example.com'] },
  ],
  severity: 'critical',
  enabled: true,
  muted_until: null,
  state: 'ok',
  error: null,
  evaluated_at: null,
  groups: [],
  truncated: false,
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
};
const VIEWS = [
  {
    name: 'spans' as const,
    measures: [{ name: 'duration_ms', description: '', unit: 'ms', aggs: ['p95' as const] }],
    dimensions: [],
    filters: ['duration_ms'],
    attributes: true,
    granularities: [],
  },
];

describe('the draft of a monitor', () => {
  it('makes the definition that it was read from', () => {
    const { name, window_minutes, threshold, for_minutes, channels, severity, enabled, group_by, query } = MONITOR;
    const { group_by: _, ...asked } = query;
    expect(bodyOf(draftOf(MONITOR), ['duration_ms'])).toEqual({
      ...{ name, window_minutes, threshold, for_minutes, channels, severity, enabled, group_by },
      query: asked,
    });
  });

  it('names what is missing by the fields of the API', () => {
    expect(Object.keys(missingIn(EMPTY_DRAFT))).toEqual(['threshold']);
    const draft = {
      ...EMPTY_DRAFT,
      limit: '1',
      window: '0',
      lasts: '1441',
      filters: [{ field: '', op: 'eq' as const, value: '' }],
    };
    expect(Object.keys(missingIn(draft)).toSorted()).toEqual(['filters[0]', 'for_minutes', 'window_minutes']);
    expect(missingIn({ ...EMPTY_DRAFT, limit: '0.5' })).toEqual({});
  });

  it('begins with what an address names, and ignores what it names wrongly', () => {
    const filters = [{ field: 'user_id', op: 'ne' as const, value: 'a&b="c"' }];
    const from = { view: 'traces' as const, measure: 'count', agg: 'sum' as const, limit: '3', filters };
    const href = newMonitorHref('org_1', from, ['model']);
    expect(draftFrom(href.slice(href.indexOf('?')))).toEqual({ ...EMPTY_DRAFT, ...from });
    expect(href).toContain('left_out=model');
    for (const search of ['?filters=no', '?filters={}', '?filters=[1,{}]', '?view=usage', '?agg=median'])
      expect(draftFrom(search)).toMatchObject({ view: 'spans', filters: [] });
  });
});

describe('the monitor of a list', () => {
  it('has the filters of the list that monitors have, and names the others', () => {
    const filters = new Map([
      ['agent_id', ['planner']],
      ['not_tags', ['a', 'b']],
      ['min_duration_ms', ['500']],
      ['model', ['gpt-4o']],
      ['root_span_name', ['a,b', 'c']],
    ]);
    expect(monitorFromList(filters)).toEqual({
      draft: {
        view: 'traces',
        measure: 'error_rate',
        agg: 'avg',
        filters: [
          { field: 'agent_id', op: 'eq', value: 'planner' },
          { field: 'tag', op: 'not_in', value: 'a, b' },
          { field: 'duration_ms', op: 'gte', value: '500' },
        ],
      },
      left_out: ['model', 'root_span_name'],
    });
  });

  it('counts the traces of an outcome', () => {
    const { draft } = monitorFromList(new Map([['outcome', ['error', 'timeout']]]));
    expect(draft).toMatchObject({ measure: 'count', agg: 'sum', filters: [{ op: 'in', value: 'error, timeout' }] });
  });
});

it('a monitor in words has the unit of its measure', () => {
  expect(measureWords(MONITOR)).toBe('95th percentile of duration ms by model');
  expect(thresholdWords(MONITOR, formatOf(VIEWS, 'spans', 'duration_ms'))).toBe('above 8\u00a0s over 15 minutes');
  expect(thresholdWords({ threshold: { below: 1 }, window_minutes: 1 }, formatOf([], 'spans', 'x'))).toBe(
    'below 1 over 1 minute',
  );
});
