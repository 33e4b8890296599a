// The calls of the gateway benchmark: one of each API, whole and streamed, and one with a large prompt.
const SYSTEM = 'Answer in one sentence, and say what you are not sure of. '.repeat(8);
const QUESTION = { role: 'user', content: 'What is the capital of France, and since when? '.repeat(8) };

/**
 * User-Agent of streamed calls, by which the mock upstream knows them: it reads no body, so that it
 * costs as little as possible.
 */
export const STREAMING = 'streaming';

/** A call of one API. */
export interface Call {
  name: string;
  path: string;
  body: Buffer;
  /** True for an answer in pieces. */
  stream: boolean;
}

const openai = { model: 'gpt-4o-mini', temperature: 0.2, messages: [{ role: 'system', content: SYSTEM }, QUESTION] };
const anthropic = { model: 'claude-sonnet-4-5', max_tokens: 1024, system: SYSTEM, messages: [QUESTION] };

const callOf = (name: string, path: string, body: object, stream = false): Call => ({
  name,
  path,
  body: Buffer.from(JSON.stringify(stream ? { ...body, stream } : body)),
  stream,
});

export const WHOLE: readonly Call[] = [
  callOf('OpenAI', '/v1/chat/completions', openai),
  callOf('Anthropic', '/v1/messages', anthropic),
];

export const STREAMS: readonly Call[] = [
  callOf('OpenAI, streamed', '/v1/chat/completions', openai, true),
  callOf('Anthropic, streamed', '/v1/messages', anthropic, true),
];

/** A call whose body has 10 KB. */
export const LARGE: Call = callOf('OpenAI with a prompt of 10 KB', '/v1/chat/completions', {
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: SYSTEM.repeat(22) }, QUESTION],
});
