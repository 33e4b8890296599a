// Ids: equal content has an equal id; and the partition of an event.
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chainStepSpanId, eventHex, partitionOf, spanIdOf, traceIdOf } from '../../../pipeline/domain/traces/ids.ts';

const hex16 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex').slice(0, 16);

/** FNV-1a 32 over UTF-8 bytes in exact arithmetic. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5n;
  for (const byte of Buffer.from(text, 'utf8')) hash = ((hash ^ BigInt(byte)) * 0x01000193n) & 0xffff_ffffn;
  return Number(hash);
}

describe('ids', () => {
  it('ids are the first 16 hex characters of SHA-256', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(50), (text, index) => {
        expect(eventHex(text)).toBe(hex16(text));
        expect(chainStepSpanId(text, index)).toBe(`spn_${hex16(`${text}:${index}`)}`);
      }),
    );
    expect(eventHex('abc')).toBe('ba7816bf8f01cfea');
  });

  it("a trace id is the given one, the session's for app events, else the event's", () => {
    expect(traceIdOf('custom', { trace_id: 'my.trace' }, 'ff')).toBe('my.trace');
    expect(traceIdOf('app', { trace_id: 'my.trace', session_id: 's' }, 'ff')).toBe('my.trace');
    expect(traceIdOf('app', { session_id: 'sess-42' }, 'ff')).toBe(`trc_${hex16('sess-42')}`);
    expect(traceIdOf('custom', { session_id: 'sess-42' }, 'ff')).toBe('trc_ff');
    expect(traceIdOf('custom', { trace_id: null }, 'ff')).toBe('trc_ff');
    expect(spanIdOf({ span_id: 'mine' }, 'ff')).toBe('mine');
    expect(spanIdOf({ span_id: null }, 'ff')).toBe('spn_ff');
  });

  it('a partition is FNV-1a 32 of organization and trace, modulo the partitions', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.string({ unit: 'grapheme' }),
        fc.integer({ min: 1, max: 256 }),
        (org, trace, partitions) => {
          expect(partitionOf(org, trace, partitions)).toBe(fnv1a(org + trace) % partitions);
        },
      ),
    );
  });
});
