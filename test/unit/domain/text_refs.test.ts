import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldTexts, followTexts, unfoldTexts } from '../../../pipeline/domain/text/text_refs.ts';

const long = 'a text of some words, as they are said';

describe('text references', () => {
  it('text references store a text once and restore it unchanged', () => {
    const attributes = { a: 1, input: long, output: { rows: [1, 2, 3], note: long } };
    const response = JSON.stringify(attributes.output);
    const stored = foldTexts(attributes, long, response);
    expect(stored).toEqual({ a: 1, input: { $ref: 'prompt' }, output: { $ref: 'response', $json: true } });
    expect(unfoldTexts(JSON.parse(JSON.stringify(stored)) as Record<string, unknown>, long, response)).toEqual(
      attributes,
    );
  });
  it.each([
    ['a letter', { input: 'x' }, 'x', { input: { $ref: 'prompt' } }],
    [
      'messages',
      { messages: [{ role: 'user', content: 'x' }] },
      '[{"role":"user","content":"x"}]',
      { messages: { $ref: 'prompt', $json: true } },
    ],
    [
      'a number',
      { input: 7, prompt: '7' },
      '7',
      { input: { $ref: 'prompt', $json: true }, prompt: { $ref: 'prompt' } },
    ],
  ])('text references replace the text, however short: %s', (_, attributes, prompt, stored) => {
    expect(foldTexts(attributes, prompt, '')).toEqual(stored);
    expect(unfoldTexts(stored, prompt, '')).toEqual(attributes);
    expect(unfoldTexts(stored, '', undefined)).toEqual({});
  });
  it('text references stand for no other attribute, and for no empty text', () => {
    const attributes = { input: '', note: long, output: null };
    expect(foldTexts(attributes, long, '')).toBe(attributes);
    expect(foldTexts(attributes, '', '')).toBe(attributes);
  });
  it('text references to a missing text are omitted', () => {
    expect(unfoldTexts({ a: 1, input: { $ref: 'prompt' } }, undefined, undefined)).toEqual({ a: 1 });
  });
  it('attributes of older rows are read as they were meant: messages were stored as sent', () => {
    const stored = {
      input: { $ref: 'prompt' },
      output: { $ref: 'value', $value: { $ref: 'x' } },
      messages: { $ref: '#/definitions/chat' },
    };
    expect(unfoldTexts(stored, long, '')).toEqual({
      input: long,
      output: { $ref: 'x' },
      messages: { $ref: '#/definitions/chat' },
    });
  });
  it('text references are exact for whatever is sent', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('prompt', 'input', 'messages', 'response', 'output', 'x'),
          fc.oneof(
            fc.constant(long),
            fc.constantFrom({ $ref: 'prompt' }, { $ref: 'value', $value: 1 }, { $ref: 'response', $json: true }),
            fc.jsonValue(),
          ),
        ),
        fc.oneof(fc.constantFrom(long, '', '{"$ref":"prompt"}', 'null'), fc.json()),
        (sent, prompt) => {
          const attributes = JSON.parse(JSON.stringify(sent)) as Record<string, unknown>;
          const stored = JSON.parse(JSON.stringify(foldTexts(attributes, prompt, long))) as Record<string, unknown>;
          expect(unfoldTexts(stored, prompt, long)).toEqual(attributes);
        },
      ),
    );
  });
});

describe('attributes that repeat a text', () => {
  const messages = [{ role: 'user', content: long }];
  const sent = {
    attributes: { input: long, messages, output: 'ok', note: long },
    prompt: JSON.stringify(messages),
    response: 'ok',
  };

  it('attributes that repeat a text contain its stored form, in the form in which they were sent', () => {
    const cut = [{ role: 'user', content: 'a text' }];
    const followed = followTexts(sent.attributes, sent, { prompt: JSON.stringify(cut), response: 'ok' });
    expect(followed).toEqual({ ...sent.attributes, messages: cut });
    expect(foldTexts(followed, JSON.stringify(cut), 'ok')).toMatchObject({ messages: { $ref: 'prompt', $json: true } });
  });
  it('attributes that repeat a text contain the text itself where it is no longer JSON', () => {
    const attributes = { input: { a: 'bcd' } };
    expect(
      followTexts(attributes, { attributes, prompt: '{"a":"bcd"}', response: '' }, { prompt: '{"a":"b', response: '' }),
    ).toEqual({
      input: '{"a":"b',
    });
  });
  it('attributes are the same object where nothing changed', () => {
    expect(followTexts(sent.attributes, sent, { prompt: sent.prompt, response: sent.response })).toBe(sent.attributes);
  });
  it('attributes do not return under a name that was removed', () => {
    expect(followTexts({ '[LABEL]': 'x' }, sent, { prompt: 'x', response: 'y' })).toEqual({ '[LABEL]': 'x' });
  });
});
