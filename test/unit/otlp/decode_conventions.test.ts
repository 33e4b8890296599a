// The OTLP decoder reads each convention: as the real instrumentations record it, and as older ones did.
import { expect, it } from 'vitest';
import { CALL, decoded, ofAttributes, QUESTION, RECORDED, recorded, SYSTEM, used } from './decoding.ts';

it('spans that OpenInference recorded become calls with texts and costs, a tool call and an embedding', () => {
  const call = recorded('openinference', 0);
  expect(used(call)).toEqual(['llm', 'gpt-4o-mini-2024-07-18', 100, 20, 40]);
  expect([JSON.parse(call.prompt), call.response, call.name]).toEqual([QUESTION, 'Paris.', 'OpenAI Chat Completions']);
  // 60 at 0.15 USD for a million, 40 from the cache at 0.075, 20 out at 0.60.
  expect(call.cost_pico_usd).toBe(24_000_000n);
  expect(Object.keys(call.attributes).filter((key) => /_messages\.|\.value$/.test(key))).toEqual([]);
  expect(JSON.stringify(call.attributes)).not.toMatch(/capital|Paris/);
  // What else the answer said stays.
  expect(call.attributes).toMatchObject({
    'gen_ai.response.id': 'c1',
    'llm.finish_reason': 'stop',
    'input.mime_type': 'application/json',
  });
  const tool = recorded('openinference', 1);
  expect([tool.response, tool.attributes['tool_calls']]).toEqual([
    '',
    [{ id: 'call_1', function: { name: 'weather', arguments: '{"city":"Paris"}' } }],
  ]);
  const embedding = recorded('openinference', 2);
  expect([embedding.kind, embedding.model, embedding.prompt, embedding.output_tokens]).toEqual([
    'llm',
    'text-embedding-3-small',
    'hello',
    0,
  ]);
  expect([embedding.input_tokens > 0, embedding.attributes['tokens_estimated']]).toEqual([true, true]);
});

it('spans that OpenLLMetry recorded become calls with texts and costs, and a tool call', () => {
  const call = recorded('openllmetry', 0);
  expect(used(call)).toEqual(['llm', 'gpt-4o-mini', 100, 20, 0]);
  expect([JSON.parse(call.prompt), call.response]).toEqual([QUESTION, 'Paris.']);
  expect(call.cost_pico_usd).toBe(27_000_000n);
  expect(recorded('openllmetry', 1).attributes['tool_calls']).toEqual([
    { type: 'tool_call', id: 'call_1', name: 'weather', arguments: { city: 'Paris' } },
  ]);
});

it('of the spans that the Vercel AI SDK recorded only the model calls have tokens and cost', () => {
  const counted = (library: string) => RECORDED[library]?.map((_, index) => recorded(library, index).input_tokens);
  expect(counted('ai')).toEqual([100, 0, 0, 100, 0, 0, 7, 0]);
  expect(counted('ai_legacy')).toEqual([0, 100, 100, 0, 7, 0]);
  expect(
    ['ai', 'ai_legacy'].map((library) => RECORDED[library]?.map((_, index) => recorded(library, index).kind)),
  ).toEqual([
    ['llm', 'tool', 'event', 'llm', 'event', 'event', 'llm', 'llm'],
    ['tool', 'llm', 'llm', 'event', 'llm', 'event'],
  ]);
  const run = recorded('ai', 5);
  expect([run.cost_pico_usd, run.attributes['gen_ai.usage.input_tokens'], run.agent_id]).toEqual([0n, 200, 'geo']);
  expect([run.response, JSON.parse(run.prompt)]).toEqual([
    'Paris.',
    [SYSTEM, { role: 'user', content: 'What is the weather in the capital of France?' }],
  ]);
  const legacy = recorded('ai_legacy', 3);
  expect([legacy.response, legacy.attributes['ai.usage.inputTokens'], legacy.cost_pico_usd]).toEqual([
    'Paris.',
    200,
    0n,
  ]);
  expect(recorded('ai_legacy', 0)).toMatchObject({
    kind: 'tool',
    prompt: '{"city":"Paris"}',
    response: '{"city":"Paris","temp":21}',
  });
  expect(used(recorded('ai_legacy', 1))).toEqual(['llm', 'gpt-4o-mini', 100, 20, 40]);
});

it('of the spans that Mastra recorded only the model calls have tokens, and all have session, user and texts', () => {
  const spans = RECORDED['mastra']?.map((_, index) => recorded('mastra', index)) ?? [];
  expect(spans.map(({ kind, input_tokens }) => `${kind} ${input_tokens}`)).toEqual([
    'event 0',
    'tool 0',
    'event 0',
    'llm 100',
    'event 0',
    'event 0',
    'llm 100',
    'event 0',
    'event 0',
    'event 0',
  ]);
  for (const { session_id, user_id } of spans) expect([session_id, user_id]).toEqual(['session-1', 'user-1']);
  const [run, tool, step] = [9, 1, 4].map((index) => spans[index]);
  const asked = [SYSTEM, { role: 'user', content: 'How is the weather in Paris?' }];
  expect([run?.agent_id, JSON.parse(run?.prompt ?? ''), JSON.parse(run?.response ?? '')]).toEqual([
    'helper',
    asked,
    { text: 'Sunny.', files: [] },
  ]);
  expect(tool).toMatchObject({ prompt: '{"city":"Paris"}', response: '{"city":"Paris","temp":21}' });
  expect(JSON.parse(step?.prompt ?? '')).toEqual(asked);
  expect(used(recorded('mastra', 6))).toEqual(['llm', 'gpt-4o-mini', 100, 20, 40]);
  expect(spans[6]?.response).toBe('Sunny.');
});

it('older names of usage and vendor and messages in numbered attributes are read', () => {
  const span = ofAttributes({
    'gen_ai.system': 'OpenAI',
    'gen_ai.request.model': 'gpt-4o-mini',
    'llm.request.type': 'chat',
    'gen_ai.usage.prompt_tokens': 100,
    'gen_ai.usage.completion_tokens': 20,
    'gen_ai.prompt.10.role': 'user',
    'gen_ai.prompt.10.content': 'last',
    'gen_ai.prompt.0.role': 'system',
    'gen_ai.prompt.0.content': 'first',
    'gen_ai.completion.0.role': 'assistant',
    'gen_ai.completion.0.content': 'Paris.',
    'gen_ai.completion.0.finish_reason': 'stop',
    'gen_ai.completion.0.tool_calls.0.name': 'weather',
  });
  expect(used(span)).toEqual(['llm', 'gpt-4o-mini', 100, 20, 0]);
  expect(JSON.parse(span.prompt)).toEqual([
    { role: 'system', content: 'first' },
    { role: 'user', content: 'last' },
  ]);
  expect([span.response, span.attributes['tool_calls']]).toEqual(['Paris.', [{ name: 'weather' }]]);
});

it('messages that are one span event each become prompt and response and leave the events', () => {
  const events = [
    { time_unix_nano: '1', name: 'gen_ai.system.message', attributes: { content: 'Answer in one word.' } },
    { time_unix_nano: '2', name: 'gen_ai.user.message', attributes: { content: 'What is the capital of France?' } },
    {
      time_unix_nano: '3',
      name: 'gen_ai.choice',
      attributes: { index: 0, finish_reason: 'stop', message: '{"role":"assistant","content":"Paris."}' },
    },
  ];
  const span = ofAttributes(CALL, { events });
  expect([JSON.parse(span.prompt), span.response]).toEqual([QUESTION, 'Paris.']);
  // The events stay, without what became prompt and response.
  expect(span.attributes['events']).toEqual([
    { time_unix_nano: '1', name: 'gen_ai.system.message', attributes: {} },
    { time_unix_nano: '2', name: 'gen_ai.user.message', attributes: {} },
    { time_unix_nano: '3', name: 'gen_ai.choice', attributes: { index: 0, finish_reason: 'stop' } },
  ]);
});

it('structured messages in one span event become prompt and response', () => {
  const attributes = {
    'gen_ai.input.messages': [{ role: 'user', parts: [{ type: 'text', content: 'Hi' }] }],
    'gen_ai.output.messages': [{ role: 'assistant', parts: [{ type: 'text', content: 'Ho' }], finish_reason: 'stop' }],
  };
  const events = [{ time_unix_nano: '1', name: 'gen_ai.client.inference.operation.details', attributes }];
  expect(ofAttributes(CALL, { events })).toMatchObject({
    prompt: '[{"role":"user","content":"Hi"}]',
    response: 'Ho',
  });
});

it('cached tokens that a vendor counts apart from the input are added to it', () => {
  const usage = {
    'gen_ai.usage.input_tokens': 10,
    'gen_ai.usage.output_tokens': 1,
    'gen_ai.usage.cache_read_input_tokens': 90,
  };
  expect(used(ofAttributes({ ...CALL, ...usage }))).toEqual(['llm', 'gpt-4o-mini', 100, 1, 90]);
});

it('tokens written to the cache and tokens of audio are priced by their own prices, by the newest names', () => {
  const call = ofAttributes({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.request.model': 'claude-sonnet-4-5',
    'gen_ai.usage.input_tokens': 1000,
    'gen_ai.usage.output_tokens': 10,
    'gen_ai.usage.cache_write.input_tokens': 600,
    'gen_ai.usage.audio.input_tokens': 5,
    'gen_ai.usage.audio.output_tokens': 3,
  });
  // 400 at 3 USD for a million, 600 written at 3.75, 10 out at 15.
  expect([call.cache_write_tokens, call.cost_pico_usd]).toEqual([600, 3_600_000_000n]);
  expect(call.attributes).toMatchObject({ 'gen_ai.usage.audio.input_tokens': 5 });
});

it('session, user and tags are read from the runtime context of the Vercel AI SDK 7', () => {
  const call = ofAttributes({
    ...CALL,
    'ai.settings.context.sessionId': 's1',
    'ai.settings.context.userId': 'u1',
    'ai.settings.context.tags': ['beta'],
  });
  expect([call.session_id, call.user_id, call.tags]).toEqual(['s1', 'u1', ['beta']]);
});

it('embed() of the Vercel AI SDK 7 makes two nested spans of one operation, and one call', () => {
  const embed = { 'gen_ai.operation.name': 'embeddings', 'gen_ai.request.model': 'text-embedding-3-small' };
  const outer = decoded({ attributes: embed }, {}, 'gen_ai');
  const inner = decoded({ attributes: { ...embed, 'gen_ai.usage.input_tokens': 7 } }, {}, 'gen_ai');
  expect([outer, inner].map(({ kind, input_tokens }) => [kind, input_tokens])).toEqual([
    ['event', 0],
    ['llm', 7],
  ]);
  // Other instrumentations make one span, with or without usage.
  expect(ofAttributes(embed).kind).toBe('llm');
});

it.each([
  [{ 'langsmith.span.kind': 'llm' }, 'llm'],
  [{ 'langsmith.span.kind': 'TOOL' }, 'tool'],
  [{ 'langsmith.span.kind': 'chain' }, 'event'],
  [{ 'mcp.method.name': 'tools/call' }, 'tool'],
  [{ 'mcp.method.name': 'tools/list' }, 'event'],
])('%o is of the kind %s', (attributes, kind) => {
  expect(ofAttributes(attributes).kind).toBe(kind);
});

it('the query and the documents of a retrieval are its prompt and response', () => {
  const documents = JSON.stringify([{ id: 'd1', score: 0.9 }]);
  const attributes = {
    'gen_ai.operation.name': 'retrieval',
    'gen_ai.retrieval.query.text': 'opening hours',
    'gen_ai.retrieval.documents': documents,
  };
  expect(ofAttributes(attributes)).toMatchObject({ kind: 'event', prompt: 'opening hours', response: documents });
});
