import { describe, expect, it } from 'vitest';
import { answerKey, type Message, messagesIn } from '../../../pipeline/domain/conversation/messages.ts';
import { callsOf } from '../../../pipeline/domain/conversation/parts.ts';

const of = (value: unknown): Message[] => messagesIn(typeof value === 'string' ? value : JSON.stringify(value));
const short = (messages: readonly Message[]) =>
  messages.map(({ role, text, tool_calls, tool_call_id }) =>
    [role, text, ...tool_calls.map(({ name, arguments: given }) => `${name}(${given})`), tool_call_id].filter(
      (part) => part !== '',
    ),
  );

const CALL = { id: 'c1', type: 'function', function: { name: 'search', arguments: '{"q":1}' } };

describe('messagesIn', () => {
  it.each([
    ['plain text', 'hello', [['user', 'hello']]],
    ['text that begins like JSON', '[not json', [['user', '[not json']]],
    ['a list that holds no messages', [1, 2], [['user', '[1,2]']]],
    ['nothing', '', []],
    [
      'OpenAI chat completions',
      [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Find ' },
            { type: 'text', text: 'it' },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [CALL] },
        { role: 'tool', tool_call_id: 'c1', content: 'found' },
      ],
      [
        ['system', 'Be brief.'],
        ['user', 'Find it'],
        ['assistant', 'search({"q":1})'],
        ['tool', 'found', 'c1'],
      ],
    ],
    [
      'OpenAI responses, whose answers are spread over items',
      [
        { role: 'user', content: [{ type: 'input_text', text: 'Find it' }] },
        { type: 'reasoning', id: 'r1', summary: [{ type: 'summary_text', text: 'hm' }] },
        { type: 'function_call', call_id: 'c1', name: 'search', arguments: '{"q":1}' },
        { type: 'function_call', call_id: 'c2', name: 'search', arguments: '{"q":2}' },
        { type: 'function_call_output', call_id: 'c1', output: 'found' },
      ],
      [
        ['user', 'Find it'],
        ['assistant', 'search({"q":1})', 'search({"q":2})'],
        ['tool', 'found', 'c1'],
      ],
    ],
    [
      'Anthropic messages, with the results of tools before what the user says',
      [
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm' },
            { type: 'tool_use', id: 'c1', name: 'search', input: { q: 1 } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: 'found' }] },
            { type: 'text', text: 'Go on' },
          ],
        },
      ],
      [
        ['assistant', 'search({"q":1})'],
        ['tool', 'found', 'c1'],
        ['user', 'Go on'],
      ],
    ],
    [
      'OpenTelemetry GenAI',
      [
        { role: 'user', parts: [{ type: 'text', content: 'Find it' }] },
        { role: 'assistant', content: [{ type: 'tool_call', id: 'c1', name: 'search', arguments: { q: 1 } }] },
        { role: 'tool', content: [{ type: 'tool_call_response', id: 'c1', response: { hits: 2 } }] },
      ],
      [
        ['user', 'Find it'],
        ['assistant', 'search({"q":1})'],
        ['tool', '{"hits":2}', 'c1'],
      ],
    ],
    [
      'LangChain, as it serializes messages and as pairs',
      [
        { lc: 1, type: 'constructor', id: ['langchain', 'schema', 'HumanMessage'], kwargs: { content: 'Find it' } },
        { type: 'ai', data: { content: 'Found' } },
        ['human', 'Thanks'],
      ],
      [
        ['user', 'Find it'],
        ['assistant', 'Found'],
        ['user', 'Thanks'],
      ],
    ],
    [
      'a request that was stored as a whole',
      { model: 'm', system: 'Be brief.', messages: [{ role: 'user', content: 'Hi' }] },
      [
        ['system', 'Be brief.'],
        ['user', 'Hi'],
      ],
    ],
  ])('reads %s', (_what, sent, expected) => {
    expect(short(of(sent))).toEqual(expected);
  });

  it('keeps thinking apart from the text, and names parts that are not text', () => {
    const [message] = of([
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm' },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'text', text: 'Look' },
        ],
      },
    ]);
    expect(message).toMatchObject({
      text: 'Look',
      reasoning: 'hm',
      attachments: [
        { type: 'image_url', url: 'https://example.com/a.png' },
        { type: 'image_url', url: null },
      ],
    });
  });

  it('gives messages one key exactly if role, text, tool calls and attachments are the same', () => {
    const key = (message: unknown): string | undefined => of([message])[0]?.key;
    const base = { role: 'user', content: 'Hi' };
    expect(key({ role: 'user', content: [{ type: 'text', text: 'Hi' }] })).toBe(key(base));
    const others = [
      { role: 'system', content: 'Hi' },
      { role: 'user', content: 'Hi ' },
      { role: 'user', content: 'Hi', tool_calls: [CALL] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'file', file: { url: 'https://x.y/z' } },
        ],
      },
    ];
    expect(new Set([base, ...others].map(key)).size).toBe(5);
  });

  it('gives an answer the key of the message that sends it back', () => {
    const [openai] = of([{ role: 'assistant', content: 'ok', tool_calls: [CALL] }]);
    expect(answerKey('ok', callsOf([CALL]))).toBe(openai?.key);
    const use = { type: 'tool_use', id: 'c1', name: 'search', input: { q: 1 } };
    const [anthropic] = of([{ role: 'assistant', content: [{ type: 'text', text: 'ok' }, use] }]);
    expect(answerKey('ok', callsOf([use]))).toBe(anthropic?.key);
  });
});
