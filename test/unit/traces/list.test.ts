import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/http/errors.ts';
import { foldPairs } from '../../../api/telemetry/traces/pairs.ts';
import { cursorOf, listQuery, positionOf } from '../../../api/telemetry/traces/schema.ts';
import type { TraceRow } from '../../../api/telemetry/traces/store.ts';

const row = (trace_key: string, version: string, sign: number): TraceRow => ({
  trace_id: `t${trace_key}`,
  trace_key,
  version,
  sign,
  started_ms: 1,
  started_at: '1970-01-01T00:00:00.001Z',
  ended_at: '1970-01-01T00:00:00.002Z',
  duration_ms: 1,
  root_span_name: '',
  agent_id: '',
  outcome: 'success',
  session_id: '',
  user_id: '',
  tags: [],
  spans: 1,
  input_tokens: 0,
  output_tokens: 0,
  cost_usd: 0,
});

describe('pairs', () => {
  const rows = [
    row('3', '9', 1),
    row('3', '5', -1),
    row('3', '5', 1),
    row('2', '4', 1),
    row('1', '7', 1),
    row('1', '6', 1),
    row('1', '6', -1),
  ];

  it('pairs leave the one current state of each trace', () => {
    const { live, last } = foldPairs(rows, false);
    expect(live.map(({ trace_id, version }) => [trace_id, version])).toEqual([
      ['t3', '9'],
      ['t2', '4'],
      ['t1', '7'],
    ]);
    expect(last).toMatchObject({ trace_key: '1', version: '6' });
  });

  it('pairs leave a last row whose partner may be cut off to the next read', () => {
    const cut = rows.slice(0, 2);
    expect(foldPairs(cut, true)).toEqual({ live: [rows[0]], last: rows[0] });
    expect(foldPairs(cut, false).last).toEqual(rows[1]);
    expect(foldPairs([], true)).toEqual({ live: [], last: null });
  });

  it('pairs give the same states however the rows are cut into reads', () => {
    const whole = foldPairs(rows, false).live;
    for (let size = 3; size <= rows.length + 1; size++) {
      const live: TraceRow[] = [];
      let at = 0;
      for (let cut = true; cut;) {
        const read = rows.slice(at, at + size);
        cut = read.length === size;
        const folded = foldPairs(read, cut);
        live.push(...folded.live);
        at =
          folded.last === null
            ? rows.length
            : rows.findLastIndex(
                (other) => other.trace_key === folded.last?.trace_key && other.version === folded.last.version,
              ) + 1;
      }
      expect(live).toEqual(whole);
    }
  });
});

describe('a cursor', () => {
  it('a cursor names where the page begins', () => {
    const position = { ms: 1_787_000_000_123, key: '18446744073709551615', before: 150 };
    expect(cursorOf(position)).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(positionOf(cursorOf(position))).toEqual(position);
  });

  it.each([
    '',
    'x',
    'e30',
    Buffer.from('[1,"x",0]').toString('base64url'),
    Buffer.from('[1,"1",-1]').toString('base64url'),
    Buffer.from('[1,"1"]').toString('base64url'),
  ])('a cursor that this list did not issue is rejected: %s', (cursor) => {
    expect(() => positionOf(cursor)).toThrow(ApiError);
  });
});

describe('the query of a list', () => {
  it('the query of a list has defaults', () => {
    expect(listQuery.parse({})).toEqual({ limit: 50, offset: 0, sort: 'started_at' });
  });

  it('the query of a list reads times with and without an offset, and days', () => {
    const { since, until } = listQuery.parse({ since: '2026-01-02', until: '2026-01-02T03:04:05+01:00' });
    expect(since).toBe(Date.parse('2026-01-02T00:00:00Z'));
    expect(until).toBe(Date.parse('2026-01-02T02:04:05Z'));
  });

  it('the query of a list accepts tags repeated and with commas', () => {
    expect(listQuery.parse({ tags: ['a,b', 'c'] }).tags).toEqual(['a', 'b', 'c']);
  });

  it.each([
    ['limit', '0'],
    ['limit', '201'],
    ['limit', '1.5'],
    ['limit', 'ten'],
    ['offset', '-1'],
    ['outcome', 'failure'],
    ['min_duration_ms', '-1'],
    ['max_duration_ms', '1e3'],
    ['since', 'yesterday'],
    ['since', '2026-02-30'],
    ['until', '1700000000'],
    ['search', '?!'],
    ['search', ''],
    ['search', ' '],
    ['search', Array.from({ length: 33 }, (_, n) => `w${n}`).join(' ')],
    ['agent_id', ['a', 'b']],
  ])('the query of a list rejects %s=%s', (name, value) => {
    const result = listQuery.safeParse({ [name]: value });
    expect(result.error?.issues[0]?.path).toEqual([name]);
  });
});
