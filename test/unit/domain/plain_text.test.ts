import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import '../../support/properties.ts';
import { plainText } from '../../../pipeline/domain/text/plain_text.ts';

const plain = (value: unknown): string[] => plainText(JSON.stringify(value)).split('\n');

describe('plainText', () => {
  it('is the text of every message, the names and arguments of tool calls, and tool results', () => {
    expect(
      plain([
        { role: 'system', content: 'be kind' },
        { role: 'user', name: 'ann', content: 'find "it"' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'call_1',
              type: 'function',
              function: { name: 'get_weather', arguments: '{"city":"Paris","n":1.50}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: '{"status":"warm","ref":12345678901234567890}' },
      ]),
    ).toEqual(['be kind', 'find "it"', 'get_weather', 'Paris', '1.50', 'warm', '12345678901234567890']);
  });

  it('reads the parts of messages, and leaves out media', () => {
    expect(
      plain([
        {
          role: 'user',
          content: [
            { type: 'text', text: 'see' },
            { type: 'image_url', image_url: { url: 'data:x' } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hmm', signature: 'zz' },
            { type: 'tool_use', id: 't1', name: 'lookup', input: { q: 'sofa' } },
          ],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: '{"a":"found"}' }] }],
        },
      ]),
    ).toEqual(['see', 'hmm', 'lookup', 'sofa', 'found']);
  });

  it.each([
    [
      'OpenTelemetry',
      [
        { role: 'user', parts: [{ type: 'text', content: 'hello' }] },
        { role: 'assistant', parts: [{ type: 'tool_call', id: 'x', name: 'calc', arguments: { a: 1 } }] },
        { role: 'tool', parts: [{ type: 'tool_call_response', id: 'x', response: '42' }] },
      ],
      ['hello', 'calc', '1', '42'],
    ],
    [
      'Gemini',
      [
        { role: 'user', parts: [{ text: 'hello' }] },
        { role: 'model', parts: [{ functionCall: { name: 'fn', args: { x: 'y' } } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'fn', response: { r: 'done' } } }] },
      ],
      ['hello', 'fn', 'y', 'done'],
    ],
    [
      'the AI SDK',
      [
        { role: 'assistant', content: [{ type: 'tool-call', toolCallId: '1', toolName: 'w', input: { c: 'rome' } }] },
        {
          role: 'tool',
          content: [
            { type: 'tool-result', toolCallId: '1', toolName: 'w', output: { type: 'json', value: { deg: 'warm' } } },
          ],
        },
      ],
      ['w', 'rome', 'warm'],
    ],
    [
      'the Responses API',
      [
        { role: 'user', content: [{ type: 'input_text', text: 'hello' }] },
        { type: 'function_call', call_id: 'c', name: 'fn', arguments: '{"k":"v"}' },
        { type: 'function_call_output', call_id: 'c', output: '{"o":"p"}' },
      ],
      ['hello', 'fn', 'v', 'p'],
    ],
  ])('reads the messages of %s', (_name, messages, expected) => {
    expect(plain(messages)).toEqual(expected);
  });

  it('is the strings and numbers of other JSON, and of JSON around messages their texts', () => {
    expect(plain({ a: 'b', c: [1, true, null, 'd\ne'] })).toEqual(['b', '1', 'd', 'e']);
    expect(plain({ messages: [{ role: 'user', content: 'hi' }] })).toEqual(['hi']);
    expect(plainText('"a\\nb"')).toBe('a\nb');
  });

  it.each([
    'plain {text}',
    '[not json',
    '{"a":1} and more',
    '[1,2',
    '"',
    '{',
    '{"a" 1}',
    'true',
    ' - [x] task',
    '[1] see below',
    '['.repeat(5000),
  ])('takes a text that is not JSON as it is: %s', (text) => {
    expect(plainText(text)).toBe(text);
  });

  it('reads a truncated list of messages as far as it goes', () => {
    const whole = JSON.stringify([
      { role: 'user', content: 'first\nline \\ "é"' },
      { role: 'assistant', content: 'second' },
    ]);
    const read = plainText(whole);
    for (let end = whole.indexOf('first') + 5; end < whole.length; end++) {
      const cut = plainText(whole.slice(0, end));
      expect(read.startsWith(cut)).toBe(true);
      expect(cut).not.toBe('');
    }
  });

  it('contains every text of a chat, and decodes whatever is in it', () => {
    const content = fc.string({ unit: 'binary', maxLength: 50 }).map((text) => text.toWellFormed());
    fc.assert(
      fc.property(fc.array(content, { minLength: 1, maxLength: 8 }), (texts) => {
        const messages = JSON.stringify(texts.map((text) => ({ role: 'user', content: text })));
        expect(plainText(messages)).toBe(texts.join('\n'));
      }),
    );
  });

  it('never throws, and leaves nothing of other JSON out', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        const strings: string[] = [];
        JSON.parse(json, (_key, value: unknown) => {
          if (typeof value === 'string') strings.push(value);
          return value;
        });
        for (const text of strings) expect(plainText(json)).toContain(text);
      }),
    );
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('[', '{', '"', ':', ',', '}', ']', '\\', 'u', '0', 'a', ' ', 't') }),
        (text) => typeof plainText(text) === 'string',
      ),
    );
  });
});
