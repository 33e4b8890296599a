// Events as the vendors' own SDKs produce them, for the tests of formats and decoders. Each call
// returns a new object.

type Event = Record<string, unknown>;

/** openai 5.x chat.completions.create with tools: null content beside tool_calls, cached prompt tokens. */
export function openAiToolCall(over: Event = {}): Event {
  return {
    request: {
      model: 'gpt-4o',
      messages: [
        { role: 'system', content: 'You are a travel agent.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Flights to ' },
            { type: 'text', text: 'Lisbon?' },
            { type: 'image_url', image_url: { url: 'https://x.test/a.png' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'search', arguments: '{"to":"LIS"}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: '[]' },
      ],
      tools: [{ type: 'function', function: { name: 'search', parameters: { type: 'object' } } }],
      temperature: 0.2,
      max_tokens: 500,
      top_p: 1,
    },
    response: {
      id: 'chatcmpl-BxYz',
      object: 'chat.completion',
      created: 1_767_225_600,
      model: 'gpt-4o-2024-08-06',
      system_fingerprint: 'fp_1',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            refusal: null,
            tool_calls: [{ id: 'call_2', type: 'function', function: { name: 'book', arguments: '{}' } }],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: {
        prompt_tokens: 1200,
        completion_tokens: 30,
        total_tokens: 1230,
        prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
      },
    },
    duration_ms: 812,
    outcome: 'success',
    tags: ['prod', 'travel'],
    attributes: { agent_id: 'agent_1', department: 'sales', realm: 'eu' },
    ...over,
  };
}

/** A plain completion: one question, one answer. */
export function openAiAnswer(over: Event = {}): Event {
  return {
    request: { model: 'gpt-4o', messages: [{ role: 'user', content: 'Say hello.' }] },
    response: {
      id: 'chatcmpl-1',
      model: 'gpt-4o-2024-08-06',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello!' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    },
    duration_ms: 100,
    outcome: 'success',
    ...over,
  };
}

/** @anthropic-ai/sdk messages.create: system blocks, thinking, tool_use, cache reads and writes at both rates. */
export function anthropicToolUse(over: Event = {}): Event {
  return {
    request: {
      model: 'claude-sonnet-4-20250514',
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [
        { role: 'user', content: 'What is the weather?' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_0', name: 'where', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_0', content: 'Lisbon' }] },
      ],
      max_tokens: 1024,
    },
    response: {
      id: 'msg_01',
      type: 'message',
      role: 'assistant',
      model: 'claude-sonnet-4-20250514',
      content: [
        { type: 'thinking', thinking: 'They want Lisbon.', signature: 'x' },
        { type: 'text', text: 'Let me ' },
        { type: 'text', text: 'look.' },
        { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Lisbon' } },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: {
        input_tokens: 50,
        cache_creation_input_tokens: 2000,
        cache_read_input_tokens: 3000,
        cache_creation: { ephemeral_5m_input_tokens: 500, ephemeral_1h_input_tokens: 1500 },
        output_tokens: 40,
        service_tier: 'standard',
      },
    },
    duration_ms: 1500,
    outcome: 'success',
    ...over,
  };
}

/** The run of a LangChain agent: an LLMResult and its intermediate steps. */
export function langChainRun(over: Event = {}): Event {
  return {
    request: {
      model: 'gpt-4o-mini',
      messages: [{ type: 'human', content: 'Who won?' }, ['ai', 'Let me look.'], 'And then?'],
    },
    response: {
      generations: [
        [
          {
            text: 'Portugal won.',
            generation_info: { finish_reason: 'stop', logprobs: null },
            message: { kwargs: { tool_calls: [] } },
          },
        ],
      ],
      llm_output: {
        token_usage: { prompt_tokens: 90, completion_tokens: 12, total_tokens: 102 },
        model_name: 'gpt-4o-mini-2024-07-18',
      },
      run: null,
    },
    chain_name: 'AgentExecutor',
    agent_name: 'researcher',
    intermediate_steps: [
      ['search(final 2016)', 'Portugal 1-0 France'],
      ['{"tool":"calculator","tool_input":"1-0"}', '1'],
      ['I should answer now', ''],
    ],
    duration_ms: 3000,
    outcome: 'success',
    ...over,
  };
}

export function customTool(over: Event = {}): Event {
  return {
    name: 'web_search',
    event_type: 'tool_call',
    outcome: 'success',
    duration_ms: 240,
    attributes: { input: { query: 'lisbon' }, output: 'Sunny, 24 degrees', agent_id: 'agent_1' },
    tags: ['tool'],
    trace_id: 'trc_0123456789abcdef',
    ...over,
  };
}

export function pageView(over: Event = {}): Event {
  return {
    event_type: 'page_view',
    user_id: 'user_7',
    session_id: 'sess-42',
    url: 'https://shop.test/cart?id=1',
    timestamp: '2026-01-31T12:00:00.250Z',
    attributes: { duration_ms: 12.6, referrer: '/' },
    ...over,
  };
}

/** Returns a copy of `event` with the value at a path of keys replaced; undefined removes it. */
export function withField(event: Event, path: readonly (string | number)[], value: unknown): Event {
  const copy = structuredClone(event);
  let at: Record<string | number, unknown> = copy;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, unknown>;
  const last = path.at(-1) ?? '';
  if (value === undefined) Reflect.deleteProperty(at, last);
  else at[last] = value;
  return copy;
}
