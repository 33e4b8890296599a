import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SseParser } from '../../../api/portal/web/live/sse.ts';
import { CONNECTIONS_MAX, connectionsOf } from '../../../api/portal/web/live/connections.ts';
import { LEASE_MS, STREAMS_MAX, Wants } from '../../../api/portal/web/live/wants.ts';

describe('the parser of the live stream', () => {
  const body = ': heartbeat\n\nevent: traces\ndata: {"a":1}\n\ndata: one\r\ndata: two\r\n\r\nevent: late\ndata: x';

  it('gives the same messages however the body is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(body.length), { maxLength: 8 }), (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), body.length];
        const parser = new SseParser();
        const messages = edges.slice(1).flatMap((end, at) => parser.push(body.slice(edges[at] ?? 0, end)));
        expect(messages).toEqual([
          { event: 'traces', data: '{"a":1}' },
          { event: 'message', data: 'one\ntwo' },
        ]);
      }),
    );
  });

  it('refuses a message without an end', () => {
    const parser = new SseParser();
    expect(() => parser.push('x'.repeat(4_000_001))).toThrow('too long');
  });
});

describe('the streams that tabs want', () => {
  it('are opened once for all tabs that want the same', () => {
    const wants = new Wants();
    wants.set('a', ['topics=traces'], 0);
    wants.set('b', ['topics=traces', 'topics=incidents'], 0);
    expect(wants.streams(1)).toEqual(['topics=traces', 'topics=incidents']);
  });

  it('end when a tab goes, and when it no longer renews', () => {
    const wants = new Wants();
    wants.set('a', ['one'], 0);
    wants.set('b', ['two'], 5);
    wants.set('b', [], 6);
    expect(wants.streams(7)).toEqual(['one']);
    expect(wants.streams(LEASE_MS)).toEqual([]);
  });

  it(`are at most ${STREAMS_MAX}, those of the latest tabs`, () => {
    const wants = new Wants();
    for (let tab = 0; tab <= STREAMS_MAX; tab += 1) wants.set(String(tab), [`stream-${tab}`], 0);
    const streams = wants.streams(0);
    expect(streams).toHaveLength(STREAMS_MAX);
    expect(streams[0]).toBe(`stream-${STREAMS_MAX}`);
    expect(streams).not.toContain('stream-0');
  });
});

describe('the connections of streams', () => {
  const stream = (query: string, org_id = 'org_1'): string => JSON.stringify({ org_id, query });
  const queriesOf = (streams: readonly string[]): string[] =>
    [...connectionsOf(streams).keys()].map((one) => (JSON.parse(one) as { query: string }).query);

  it('are one for all topics of an organization, in whatever order they are wanted', () => {
    const streams = [stream('topics=jobs'), stream('topics=traces&agent_id=a'), stream('topics=incidents')];
    const expected = ['topics=incidents%2Cjobs%2Ctraces&agent_id=a'];
    expect(queriesOf(streams)).toEqual(expected);
    expect(queriesOf(streams.toReversed())).toEqual(expected);
    expect([...connectionsOf(streams).values()]).toEqual([streams]);
  });

  it('are two where two lists follow traces by different filters', () => {
    expect(queriesOf([stream('topics=traces'), stream('topics=incidents'), stream('topics=traces&tags=x')])).toEqual([
      'topics=incidents%2Ctraces',
      'topics=traces&tags=x',
    ]);
  });

  it(`are at most ${CONNECTIONS_MAX}, and those of the first streams`, () => {
    const streams = ['a', 'b', 'c'].map((org) => stream('topics=incidents', org));
    expect([...connectionsOf(streams).values()].flat()).toEqual(streams.slice(0, CONNECTIONS_MAX));
  });

  it('have at most 16 topics each, as the API takes', () => {
    const streams = Array.from({ length: 20 }, (_, at) => stream(`topics=trace:t${at}`));
    expect([...connectionsOf(streams).values()].map(({ length }) => length)).toEqual([16, 4]);
  });
});
