import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SseParser } from '../../../api/portal/web/live/sse.ts';
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
    for (const tab of ['a', 'b', 'c']) wants.set(tab, [`stream-${tab}`], 0);
    expect(wants.streams(0)).toEqual(['stream-c', 'stream-b']);
  });
});
