// Requests and answers of OpenAI's API for tests of the gateway.
type Data = Record<string, unknown>;

export const question = [{ role: 'user' as const, content: 'What is the capital of France?' }];

export const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'gpt-4o-mini-2024-07-18',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Paris.', refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 14, completion_tokens: 2, total_tokens: 16, prompt_tokens_details: { cached_tokens: 4 } },
  a_field_of_tomorrow: [1.0, { big: '9007199254740993' }],
};

export const chunkOf = (choices: unknown[], more: Data = {}): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-2', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o-mini', choices, ...more })}\n\n`;
export const say = (content: string): string => chunkOf([{ index: 0, delta: { content }, finish_reason: null }]);
export const USAGE = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 };
export const STREAM = [
  chunkOf([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
  say('Par'),
  say('is – 巴黎.'),
  chunkOf([{ index: 0, delta: {}, finish_reason: 'stop' }]),
];
export const LAST = [chunkOf([], { usage: USAGE }), 'data: [DONE]\n\n'];
