// JSON text without unpaired surrogates.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { wellFormedJson } from '../../../pipeline/domain/text/well_formed.ts';

/** Text of any UTF-16 code units. */
const anyText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units));

test('every unpaired surrogate in values and names becomes U+FFFD, and nothing else changes', () => {
  fc.assert(
    fc.property(fc.dictionary(anyText, fc.oneof(anyText, fc.array(anyText))), (value) => {
      const json = wellFormedJson(JSON.stringify(value));
      const expected = Object.fromEntries(
        Object.entries(value).map(([name, one]) => [
          name.toWellFormed(),
          Array.isArray(one) ? one.map((text) => text.toWellFormed()) : one.toWellFormed(),
        ]),
      );
      expect(JSON.parse(json)).toEqual(expected);
    }),
    { numRuns: 2000 },
  );
});

test('a backslash before the letters of an escape is kept', () => {
  for (const text of ['\\ud800', '\\\\ud800', '"\\ud83d"', '\\u0041', '\n\\ud800\t'])
    expect(JSON.parse(wellFormedJson(JSON.stringify({ text, [text]: '\ud800' })))).toEqual({ text, [text]: '\ufffd' });
});

test('a text without unpaired surrogates is returned unchanged', () => {
  const json = JSON.stringify({ text: 'a \u{1f600} \\ "b"\n' });
  expect(wellFormedJson(json)).toBe(json);
});
