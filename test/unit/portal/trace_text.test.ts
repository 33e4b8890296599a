import fc from 'fast-check';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { describe, expect, it } from 'vitest';
import { gatewayCall } from '../../../api/portal/web/screens/trace/gateway_call.ts';
import { decodeNamedCharacterReference, entityNames } from '../../../api/portal/web/trace/text/entities.ts';
import { readMessages } from '../../../api/portal/web/trace/text/messages.ts';
import { oneLine, preview } from '../../../api/portal/web/trace/text/one_line.ts';
import { findInText, pieceAt, pieceStarts } from '../../../api/portal/web/trace/text/pieces.ts';
import { isRenderable } from '../../../api/portal/web/trace/text/renderable.ts';

describe('a stored call as a command', () => {
  it('has its model, messages and tool calls in the form of chat completions, quoted for a shell', () => {
    const messages = readMessages(
      JSON.stringify([
        { role: 'user', content: "Where's my sofa?" },
        {
          role: 'assistant',
          content: '',
          tool_calls: [{ id: 'c1', function: { name: 'find', arguments: '{"a":1}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'here' },
      ]),
    );
    const command = gatewayCall('http://127.0.0.1:8080', 'gpt-4o', messages ?? []);
    expect(command).toMatch(/^curl -s 'http:\/\/127\.0\.0\.1:8080\/v1\/chat\/completions' \\\n/);
    const body = /-d '([\s\S]*)'$/.exec(command)?.[1]?.replaceAll("'\\''", "'");
    expect(JSON.parse(body ?? '')).toEqual({
      model: 'gpt-4o',
      messages: [
        { role: 'user', content: "Where's my sofa?" },
        {
          role: 'assistant',
          content: '',
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find', arguments: '{"a":1}' } }],
        },
        { role: 'tool', content: 'here', tool_call_id: 'c1' },
      ],
    });
  });
});

describe('messages of a prompt', () => {
  it('are read from the form of chat completions', () => {
    const messages = readMessages(
      JSON.stringify([
        { role: 'system', content: 'Be brief.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', function: { name: 'book', arguments: '{"a":1}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'declined' },
      ]),
    );
    expect(messages?.map(({ role, text }) => [role, text])).toEqual([
      ['system', 'Be brief.'],
      ['assistant', ''],
      ['tool', 'declined'],
    ]);
    expect(messages?.[1]?.tool_calls).toEqual([{ id: 'c1', name: 'book', arguments: '{"a":1}' }]);
    expect(messages?.[2]?.tool_call_id).toBe('c1');
  });

  it('are read from content in parts', () => {
    const messages = readMessages(
      JSON.stringify([
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Which flight?' },
            { type: 'text', text: 'I will look.' },
            { type: 'tool_use', id: 't1', name: 'search', input: { to: 'ZRH' } },
          ],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: '3 flights' }] }],
        },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] },
      ]),
    );
    expect(messages?.[0]).toMatchObject({ text: 'I will look.', reasoning: 'Which flight?' });
    expect(messages?.[0]?.tool_calls[0]?.name).toBe('search');
    expect(messages?.[1]).toMatchObject({ text: '3 flights', tool_call_id: 't1' });
    expect(messages?.[2]?.attachments).toEqual([{ type: 'image_url', url: 'https://example.com/a.png' }]);
  });

  it('are absent in a text that is no list of messages', () => {
    for (const text of ['', 'Hello', '[1, 2]', '[]', '{"a": 1}', '[{"role": "user"', '"text"'])
      expect(readMessages(text)).toBeNull();
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        readMessages(
          JSON.stringify([
            { role: 'user', content: value },
            { role: 'tool', tool_calls: [value], content: [value] },
          ]),
        );
      }),
    );
  });
});

describe('a long text', () => {
  it('is cut into pieces that together are the text', () => {
    const line = fc.string({ maxLength: 3000, unit: 'binary' });
    fc.assert(
      fc.property(fc.array(line, { minLength: 8, maxLength: 20 }), (lines) => {
        const text = lines.join('\n').padEnd(25_000, 'ab ');
        const starts = pieceStarts(text);
        let joined = '';
        starts.forEach((start, index) => {
          expect(joined.length).toBe(start);
          joined += pieceAt(text, starts, index);
          const next = starts[index + 1];
          if (next !== undefined && joined.length === next - 1) joined += '\n';
        });
        expect(joined).toBe(text);
      }),
    );
  });

  it('never cuts between the halves of a character', () => {
    const text = '😀'.repeat(20_001);
    for (const start of pieceStarts(text)) expect(text.charCodeAt(start)).toBe(0xd83d);
  });

  it('is searched whatever the case', () => {
    expect(findInText('Refund the refund', 'REFUND')).toEqual([
      { from: 0, to: 6 },
      { from: 11, to: 17 },
    ]);
    expect(findInText('abc', '')).toEqual([]);
  });
});

describe('a text that is shown as Markdown', () => {
  it.each([
    ['prose with emphasis, lists and code', 'Some *words*, `code` and\n\n- one\n  - two\n\n> said\n'.repeat(1000)],
    ['many names with underscores', 'snake_case_name\n\n'.repeat(5000)],
    ['a line of dashes', '-'.repeat(5000)],
    ['nothing', ''],
  ])('may be %s', (_, text) => {
    expect(isRenderable(text)).toBe(true);
  });

  it.each([
    ['is longer than 200,000 characters', 'a'.repeat(200_001)],
    ['opens thousands of quotes in one line', `a\n${'> '.repeat(5000)}b`],
    ['opens thousands of lists in one line', `${'- '.repeat(5000)}b`],
    ['opens numbered lists and quotes in turn', `${'1. > '.repeat(100)}b`],
    ['indents a list by hundreds of columns', `- a\n${' '.repeat(500)}- b`],
    ['has thousands of marks of emphasis in one paragraph', '*a_'.repeat(5000)],
  ])('is none that %s', (_, text) => {
    expect(isRenderable(text)).toBe(false);
  });
});

describe('a character reference by name', () => {
  it('is the character that the parser knows by it', () => {
    for (const name of entityNames()) {
      const [paragraph] = fromMarkdown(`a&${name};b`).children;
      const text =
        paragraph?.type === 'paragraph' && paragraph.children[0]?.type === 'text' ? paragraph.children[0] : null;
      const read = decodeNamedCharacterReference(name);
      expect([name, `a${read}b`]).toEqual([name, text?.value]);
    }
  });

  it('stays as it is written if it is not known', () => {
    expect(decodeNamedCharacterReference('nothing')).toBe(false);
  });
});

describe('a name in one line', () => {
  it('shows signs for control characters and marks of direction', () => {
    expect(oneLine('a\nb\u0000c\u202ed')).toBe('a␊b␀c‹202E›d');
    expect(oneLine('plain name')).toBe('plain name');
  });
});

describe('the beginning of a text in one line', () => {
  it('has one space in the place of line breaks and tabs', () => {
    expect(preview('You are a planner.\r\n\n\tRules:\n- be brief', 100)).toBe('You are a planner. Rules: - be brief');
  });

  it('says by an ellipsis that the text goes on', () => {
    expect(preview('abcdef', 3)).toBe('abc…');
    expect(preview('abc', 3)).toBe('abc');
    expect(preview(`abc${'\n'.repeat(100)}def`, 10)).toBe('abc…');
  });

  it('shows signs for other control characters, and never cuts a character in half', () => {
    expect(preview('a\u0000\u202eb', 10)).toBe('a␀‹202E›b');
    expect(preview('ab😀', 3).isWellFormed()).toBe(true);
  });
});
