import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ERROR_CHARS_MAX, NORMAL_CHARS_MAX, normalizeError } from '../../../pipeline/domain/incidents/error_text.ts';

describe('the text of an error without what differs', () => {
  it.each([
    ['Error: flight HAT030 not available on date 2024-05-13', 'Error: flight # not available on date #'],
    [
      'payment amount does not add up, total price is 1,203.50, but paid 833',
      'payment amount does not add up, total price is #, but paid #',
    ],
    ['Timeout after 1234ms for user u_8123', 'Timeout after #ms for user #'],
    ['Timeout after 98.5 ms', 'Timeout after # ms'],
    ['Request failed with status code 429', 'Request failed with status code #'],
    ['connect ECONNREFUSED 10.0.0.7:5432', 'connect ECONNREFUSED #'],
    ['request 550e8400-e29b-41d4-a716-446655440000 failed at 2026-05-14T12:00:01.123Z', 'request # failed at #'],
    ['object at 0x7ffe12ab is gone', 'object at # is gone'],
    ['commit 9f86d081884c7d65 is missing', 'commit # is missing'],
    ['commit 12345678 is missing', 'commit # is missing'],
    ['user bob.smith@example.com not found', 'user # not found'],
    [
      'GET https://api.example.com/users/123/orders?id=5&x=a failed',
      'GET https://api.example.com/users/#/orders failed',
    ],
    ['temperature -5 is below 1e-3', 'temperature # is below #'],
    ['issue #51 was opened again', 'issue # was opened again'],
    ['price $5.00 at 99% load', 'price $# at #% load'],
    ['Could not find file "/tmp/a b.txt"', 'Could not find file "…"'],
    ["Cannot read properties of undefined (reading 'foo')", 'Cannot read properties of undefined (reading "…")'],
    ["can't open the user's file 'x.txt'", `can't open the user's file "…"`],
    ['unknown tool `search` and “find”', 'unknown tool "…" and "…"'],
    ['say "a \\"b\\" c" twice', 'say "…" twice'],
    ['items 1, 2, 3 are missing', 'items # are missing'],
    ['  several\n\n lines\tof it  ', 'several lines of it'],
    ['', ''],
  ])('%s', (raw, normal) => {
    expect(normalizeError(raw)).toBe(normal);
  });

  it('an error that is JSON is reduced to its message', () => {
    const message = 'Rate limit reached for gpt-4o: Limit 30000, Used 29000';
    const normal = 'Rate limit reached for #: Limit #, Used #';
    expect(normalizeError(JSON.stringify({ error: { message, type: 'tokens' } }))).toBe(normal);
    expect(normalizeError(JSON.stringify({ type: 'error', error_message: message }))).toBe(normal);
    expect(normalizeError(JSON.stringify([{ detail: message }]))).toBe(normal);
    expect(normalizeError(JSON.stringify(message))).toBe(normal);
    expect(normalizeError('{"status": "failed", "code": 17}')).toBe('{"status": "…", "code": #}');
    expect(normalizeError("{'status': 'failed', 'code': 17}")).toBe(`{'status': "…", 'code': #}`);
  });

  it('the normalized text keeps the cause', () => {
    const apart = [
      'connection refused',
      'connection reset',
      'Connection refused by peer',
      'not found',
      'tool call_1 not found',
    ];
    expect(new Set(apart.map(normalizeError)).size).toBe(apart.length);
  });

  it('the normalized text is the same whatever numbers, ids and quotations it contains', () => {
    const hex = fc
      .string({ unit: fc.constantFrom(...Array.from('0123456789abcdef')), minLength: 8, maxLength: 32 })
      .filter((text) => /\d/.test(text));
    const quote = fc.string({ maxLength: 30 }).filter((text) => !/["\\]/.test(text));
    fc.assert(
      fc.property(
        fc.nat(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        hex,
        fc.uuid(),
        quote,
        (n, price, id, uuid, text) => {
          const raw = `step ${n} of run_${id} (${id}, ${uuid}) failed: "${text}" costs ${price} USD, ${n}ms`;
          expect(normalizeError(raw)).toBe('step # of # (#) failed: "…" costs # USD, #ms');
        },
      ),
    );
  });

  it('the normalized text is one line of bounded length, whatever the input', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 5000 }), (raw) => {
        const normal = normalizeError(raw);
        expect(normal.length).toBeLessThanOrEqual(NORMAL_CHARS_MAX);
        expect(normal).not.toMatch(/[\n\r\t]/);
        expect(normal.isWellFormed()).toBe(true);
      }),
      { numRuns: 30 },
    );
    // Characters beyond those that are read make no difference.
    const long = 'e'.repeat(ERROR_CHARS_MAX);
    expect(normalizeError(`${long} 1`)).toBe(normalizeError(long));
  });
});
