// Requests and answers of Anthropic's API for tests of the gateway.
type Data = Record<string, unknown>;

export const question = [{ role: 'user' as const, content: 'What is the capital of France?' }];

export const MESSAGE = {
  id: 'msg_01',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [
    { type: 'thinking', thinking: 'A simple question.', signature: 'c2ln' },
    { type: 'text', text: 'Paris.' },
  ],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: {
    input_tokens: 10,
    cache_read_input_tokens: 1000,
    cache_creation_input_tokens: 300,
    cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
    output_tokens: 50,
    output_tokens_details: { thinking_tokens: 30 },
  },
  a_field_of_tomorrow: [1.0, { big: '9007199254740993' }],
};
/**
 * Cost of MESSAGE in USD: 3 a million input tokens, 0.3 for those read from the cache, 3.75 and 6
 * for those written to it for five minutes and for an hour, 15 for output.
 */
export const MESSAGE_COST = (10 * 3 + 1000 * 0.3 + 200 * 3.75 + 100 * 6 + 50 * 15) / 1e6;

export const event = (data: Data): string => `event: ${String(data['type'])}\ndata: ${JSON.stringify(data)}\n\n`;
const delta = (index: number, given: Data) => event({ type: 'content_block_delta', index, delta: given });

/** The events of a stream that thinks, answers and calls a tool. */
export const START = event({
  type: 'message_start',
  message: { ...MESSAGE, content: [], stop_reason: null, usage: { ...MESSAGE.usage, output_tokens: 1 } },
});
export const STREAM = [
  START,
  event({
    type: 'content_block_start',
    index: 0,
    content_block: { type: 'thinking', thinking: '', signature: '' },
  }),
  event({ type: 'ping' }),
  delta(0, { type: 'thinking_delta', thinking: 'A simple question.' }),
  delta(0, { type: 'signature_delta', signature: 'c2ln' }),
  event({ type: 'content_block_stop', index: 0 }),
  event({ type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } }),
  delta(1, { type: 'text_delta', text: 'Par' }),
  delta(1, { type: 'text_delta', text: 'is – 巴黎.' }),
  event({ type: 'content_block_stop', index: 1 }),
  event({
    type: 'content_block_start',
    index: 2,
    content_block: { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} },
  }),
  delta(2, { type: 'input_json_delta', partial_json: '{"city":' }),
  delta(2, { type: 'input_json_delta', partial_json: '"Paris"}' }),
  event({ type: 'content_block_stop', index: 2 }),
  event({
    type: 'message_delta',
    delta: { stop_reason: 'tool_use', stop_sequence: null },
    usage: { output_tokens: 20 },
  }),
  event({
    type: 'message_delta',
    delta: { stop_reason: 'tool_use', stop_sequence: null },
    usage: { ...MESSAGE.usage, output_tokens: 50 },
  }),
  event({ type: 'message_stop' }),
];
