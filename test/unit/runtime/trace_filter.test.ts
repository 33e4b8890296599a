import { describe, expect, it } from 'vitest';
import { xxHash32 } from '../../../pipeline/domain/traces/xxhash.ts';
import { TraceFilter, traceHash } from '../../../pipeline/traces/trace_filter.ts';

describe('xxHash32', () => {
  // Vectors of the specification's reference implementation, seed 0; the last is ClickHouse 26.7's
  // result.
  it.each([
    ['', 0x02cc5d05],
    ['a', 0x550d7456],
    ['abc', 0x32d153ff],
    ['a longer text than sixteen bytes', 286_647_598],
    ['org_a t5', 55_639_972],
  ])('xxHash32 of %j', (text, hash) => {
    expect(xxHash32(Buffer.from(text))).toBe(hash);
  });
});

describe('TraceFilter', () => {
  it('the trace filter never denies a trace that it was given, also while it grows, and rarely claims another', () => {
    const filter = new TraceFilter(10);
    const count = 60_000;
    for (let n = 0; n < count; n += 1) filter.add(traceHash('org', `trace-${n}`));
    for (let n = 0; n < count; n += 1) expect(filter.mayHave(traceHash('org', `trace-${n}`))).toBe(true);
    let claimed = 0;
    for (let n = 0; n < 10_000; n += 1) if (filter.mayHave(traceHash('other', `trace-${n}`))) claimed += 1;
    expect(claimed).toBeLessThan(300);
  });
});
