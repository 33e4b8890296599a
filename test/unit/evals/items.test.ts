import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { canonicalJson, itemMessages } from '../../../pipeline/domain/evals/dataset_items.ts';

describe('an item as it is sent', () => {
  it('an item is sent as the template with its input in it', () => {
    const item = { input: { question: 'How far?', units: ['km', 'mi'] } };
    expect(itemMessages(item, 'Q: {{question}} in {{units}}')).toEqual([
      { role: 'user', content: 'Q: How far? in ["km","mi"]' },
    ]);
    expect(
      itemMessages(item, [
        { role: 'system', content: 'Answer.' },
        { role: 'user', content: '{{input}}' },
      ]),
    ).toEqual([
      { role: 'system', content: 'Answer.' },
      { role: 'user', content: JSON.stringify(item.input) },
    ]);
  });

  it('an item names the variables that it has no value for', () => {
    expect(itemMessages({ input: { a: 1 } }, '{{a}} {{b}} {{c}}')).toBe(
      "the item's input has no value for {{b}}, {{c}}",
    );
  });

  it('an item is sent as its input where there is no prompt', () => {
    const messages = [
      { role: 'system', content: 's' },
      { role: 'user', content: 'u' },
    ];
    expect(itemMessages({ input: { messages, prompt: 'not this' } }, null)).toEqual(messages);
    expect(itemMessages({ input: { prompt: 'p', text: 'not this' } }, null)).toEqual([{ role: 'user', content: 'p' }]);
    expect(itemMessages({ input: { text: 't' } }, null)).toEqual([{ role: 'user', content: 't' }]);
    expect(itemMessages({ input: { question: 'q' } }, null)).toEqual([{ role: 'user', content: '{"question":"q"}' }]);
    expect(itemMessages({ input: {} }, null)).toMatch(/is empty/);
    expect(itemMessages({ input: { messages: [{ role: 'user', content: 7 }] } }, null)).toMatch(/no list of/);
  });
});

describe('canonical JSON', () => {
  it('canonical JSON is the same in any order of keys, and still the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const turned = JSON.parse(JSON.stringify(value), (_key, held: unknown) =>
          typeof held === 'object' && held !== null && !Array.isArray(held)
            ? Object.fromEntries(Object.entries(held).reverse())
            : held,
        ) as unknown;
        expect(canonicalJson(turned)).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});
