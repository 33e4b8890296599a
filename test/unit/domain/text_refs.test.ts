import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldTexts, unfoldTexts } from '../../../pipeline/domain/text_refs.ts';

const long = 'a text that is long enough to be worth a reference of its own';

describe('text references', () => {
  it('store a text once and give it back as it was', () => {
    const attributes = { a: 1, input: long, output: { rows: [1, 2, 3], note: long } };
    const response = JSON.stringify(attributes.output);
    const stored = foldTexts(attributes, long, response);
    expect(stored).toEqual({ a: 1, input: { $ref: 'prompt' }, output: { $ref: 'response', $json: true } });
    expect(unfoldTexts(JSON.parse(JSON.stringify(stored)) as Record<string, unknown>, long, response)).toEqual(attributes);
  });
  it('leave out what is no longer there', () => {
    expect(unfoldTexts({ a: 1, input: { $ref: 'prompt' } }, undefined, undefined)).toEqual({ a: 1 });
  });
  it('are exact for whatever is sent', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('prompt', 'input', 'response', 'output', 'x'),
          fc.oneof(
            fc.constant(long),
            fc.constantFrom({ $ref: 'prompt' }, { $ref: 'value', $value: 1 }, { $ref: 'response', $json: true }),
            fc.jsonValue(),
          ),
        ),
        fc.constantFrom(long, ''),
        (sent, prompt) => {
          const attributes = JSON.parse(JSON.stringify(sent)) as Record<string, unknown>;
          const stored = JSON.parse(JSON.stringify(foldTexts(attributes, prompt, long))) as Record<string, unknown>;
          expect(unfoldTexts(stored, prompt, long)).toEqual(attributes);
        },
      ),
    );
  });
});
