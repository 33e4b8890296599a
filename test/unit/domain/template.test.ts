import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import '../../support/properties.ts';
import { promptVariables, renderPrompt } from '../../../pipeline/domain/text/prompt.ts';
import { RENDERED_CHARS_MAX, renderTemplate, variablesOf } from '../../../pipeline/domain/text/template.ts';

const name = fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/);
/** Text without braces. */
const plain = fc.string().map((text) => text.replaceAll(/[{}]/g, ''));

describe('a template', () => {
  it('a template inserts values by name, with or without white space in the braces', () => {
    expect(
      renderTemplate('Hi {{name}}, {{ order-id }} of {{\nshop.v2\t}}!', {
        name: 'Ann',
        'order-id': '7',
        'shop.v2': 'x',
      }),
    ).toEqual({
      text: 'Hi Ann, 7 of x!',
      missing: [],
      cut: false,
    });
  });

  it('a template writes values other than text as compact JSON', () => {
    const values = { n: 1.5, b: false, nothing: null, list: [1, 'two'], object: { a: { b: 1 } } };
    expect(renderTemplate('{{n}} {{b}} {{nothing}} {{list}} {{object}}', values).text).toBe(
      '1.5 false null [1,"two"] {"a":{"b":1}}',
    );
  });

  it('a template looks up a name with dots whole first, then as a path', () => {
    expect(renderTemplate('{{a.b}}', { a: { b: 'path' } }).text).toBe('path');
    expect(renderTemplate('{{a.b}}', { a: { b: 'path' }, 'a.b': 'whole' }).text).toBe('whole');
    expect(renderTemplate('{{list.1}}', { list: ['x', 'y'] }).text).toBe('y');
    expect(renderTemplate('{{a.c}} {{a.b.c}}', { a: { b: 'path' } }).missing).toEqual(['a.c', 'a.b.c']);
  });

  it('a template leaves a variable without a value as it is, and reports it once', () => {
    expect(renderTemplate('{{b}} {{ a }} {{b}}', {})).toEqual({
      text: '{{b}} {{ a }} {{b}}',
      missing: ['b', 'a'],
      cut: false,
    });
  });

  it("a template inserts only an object's own values", () => {
    const names = ['__proto__', 'constructor', 'toString', 'constructor.name', 'a.length'];
    const template = names.map((one) => `{{${one}}}`).join('');
    expect(renderTemplate(template, { a: 'text', f: () => 1 })).toEqual({ text: template, missing: names, cut: false });
    expect(renderTemplate('{{f}}', { f: () => 1 }).missing).toEqual(['f']);
  });

  it('a template leaves other braces alone', () => {
    const text = '{a} {{}} {{a b}} {{{a}}} {{"json": {"x": 1}}}';
    expect(variablesOf(text)).toEqual(['a']);
    expect(renderTemplate(text, { a: 'A' }).text).toBe('{a} {{}} {{a b}} {A} {{"json": {"x": 1}}}');
  });

  it('a template is rendered in one pass: a value that looks like a variable stays', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(name, { minLength: 1, maxLength: 6 }),
        fc.array(plain, { minLength: 7, maxLength: 7 }),
        (names, texts) => {
          const values = Object.fromEntries(
            names.map((one, i) => [one, `{{${names[(i + 1) % names.length] ?? ''}}}$&$1`]),
          );
          const template = names.map((one, i) => `${texts[i] ?? ''}{{${one}}}`).join('');
          const expected = names.map((one, i) => `${texts[i] ?? ''}${values[one] ?? ''}`).join('');
          expect(renderTemplate(template, values)).toEqual({ text: expected, missing: [], cut: false });
        },
      ),
    );
  });

  it('a template lacks a value for exactly the variables that were not given', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(name, { maxLength: 8 }),
        fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
        (names, given) => {
          const template = names.map((one) => `x {{${one}}} `).join('');
          const values = Object.fromEntries(names.filter((_, i) => given[i]).map((one) => [one, 'v']));
          expect(variablesOf(template)).toEqual(names);
          expect(renderTemplate(template, values).missing).toEqual(names.filter((_, i) => !given[i]));
        },
      ),
    );
  });

  it('a template reads a long run of opening braces and spaces at once', () => {
    expect(renderTemplate(`${'{{ '.repeat(20_000)}${' '.repeat(40_000)}`, {}).missing).toEqual([]);
  });
});

describe('a prompt', () => {
  it('a prompt ends at its bound, however often it names a long value', () => {
    const content = '{{a}}'.repeat(10_000);
    const template = Array.from({ length: 100 }, () => ({ role: 'user', content }));
    const { messages, cut } = renderPrompt(template, { a: 'x'.repeat(1_000_000) });
    expect([messages.reduce((sum, message) => sum + message.content.length, 0), cut]).toEqual([
      RENDERED_CHARS_MAX,
      true,
    ]);
    expect(renderPrompt('{{a}}', { a: 'x'.repeat(RENDERED_CHARS_MAX) }).cut).toBe(false);
    expect(renderPrompt('{{a}}.', { a: 'x'.repeat(RENDERED_CHARS_MAX) }).cut).toBe(true);
  });

  it('a prompt that is a text is one message of the user', () => {
    expect(renderPrompt('Hi {{name}}', { name: 'Ann' })).toEqual({
      messages: [{ role: 'user', content: 'Hi Ann' }],
      text: 'Hi Ann',
      missing: [],
      cut: false,
    });
  });

  it('a prompt that is a chat keeps its roles, and reads as the JSON of its messages', () => {
    const template = [
      { role: 'system', content: 'You help {{shop}}.' },
      { role: 'user', content: '{{question}} ({{shop}}, {{id}})' },
    ];
    expect(promptVariables(template)).toEqual(['shop', 'question', 'id']);
    const { messages, text, missing } = renderPrompt(template, { shop: 'Acme', question: 'When?' });
    expect(messages).toEqual([
      { role: 'system', content: 'You help Acme.' },
      { role: 'user', content: 'When? (Acme, {{id}})' },
    ]);
    expect(JSON.parse(text)).toEqual(messages);
    expect(missing).toEqual(['id']);
  });
});
