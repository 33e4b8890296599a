// The OTLP decoder reads what vendors and libraries write beside the conventions for model calls:
// documents, memories, prompts, tools of MCP servers, and the attributes of LangSmith and Google ADK.
import { describe, expect, it, test } from 'vitest';
import { CALL, decoded, ofAttributes, QUESTION, recorded, used } from './decoding.ts';

const SERVER = 2;

describe('documents', () => {
  const documents = {
    'retrieval.documents.0.document.id': 'd1',
    'retrieval.documents.0.document.content': 'Open from nine.',
    'retrieval.documents.0.document.score': 0.9,
    'retrieval.documents.10.document.content': 'Closed on Sunday.',
    'retrieval.documents.2.document.content': 'Ring twice.',
  };

  test('that an OpenInference retriever found are its response, in their order, and its input is the prompt', () => {
    const span = ofAttributes({
      'openinference.span.kind': 'RETRIEVER',
      'input.value': 'opening hours',
      'output.value': JSON.stringify({ documents: [{ pageContent: 'Open from nine.' }] }),
      ...documents,
    });
    expect(span).toMatchObject({ kind: 'event', prompt: 'opening hours' });
    expect(JSON.parse(span.response)).toEqual([
      { id: 'd1', content: 'Open from nine.', score: 0.9 },
      { content: 'Ring twice.' },
      { content: 'Closed on Sunday.' },
    ]);
    expect(JSON.stringify(span.attributes)).not.toMatch(/nine|Sunday|opening/);
  });

  test('that an OpenInference reranker was given are in its prompt, and those it returned in its response', () => {
    const span = ofAttributes({
      'openinference.span.kind': 'RERANKER',
      'reranker.query': 'opening hours',
      'reranker.model_name': 'rerank-3',
      'reranker.input_documents.0.document.content': 'Ring twice.',
      'reranker.input_documents.1.document.content': 'Open from nine.',
      'reranker.output_documents.0.document.content': 'Open from nine.',
      'reranker.output_documents.0.document.score': 0.8,
    });
    expect(JSON.parse(span.prompt)).toEqual({
      query: 'opening hours',
      documents: [{ content: 'Ring twice.' }, { content: 'Open from nine.' }],
    });
    expect(JSON.parse(span.response)).toEqual([{ content: 'Open from nine.', score: 0.8 }]);
    expect(span.attributes['reranker.model_name']).toBe('rerank-3');
  });

  test('that the AI SDK reranks are prompt and response of an event without tokens', () => {
    const inner = { 'ai.documents': ['"a"', '"b"'], 'ai.ranking': ['{"index":1,"score":0.9}'] };
    for (const operation of [
      { 'gen_ai.operation.name': 'rerank', 'gen_ai.request.model': 'rerank-3' },
      { 'ai.operationId': 'ai.rerank.doRerank', 'ai.model.id': 'rerank-3' },
    ])
      expect(ofAttributes({ ...operation, ...inner })).toMatchObject({
        kind: 'event',
        model: '',
        prompt: JSON.stringify(inner['ai.documents']),
        response: JSON.stringify(inner['ai.ranking']),
        input_tokens: 0,
        cost_pico_usd: 0n,
      });
  });
});

test('memories that are stored are a prompt, and memories that are found a response', () => {
  const records = [{ id: 'm1', content: 'Likes tea' }];
  const stored = ofAttributes({ 'gen_ai.operation.name': 'upsert_memory', 'gen_ai.memory.records': records });
  expect(stored).toMatchObject({ kind: 'event', prompt: JSON.stringify(records), response: '' });
  const found = ofAttributes({
    'gen_ai.operation.name': 'search_memory',
    'gen_ai.memory.store.id': 'profiles',
    'gen_ai.memory.query.text': 'What does she drink?',
    'gen_ai.memory.records': JSON.stringify(records),
  });
  expect(found).toMatchObject({ prompt: 'What does she drink?', response: JSON.stringify(records) });
  expect(found.attributes['gen_ai.memory.store.id']).toBe('profiles');
  expect(JSON.stringify(found.attributes)).not.toMatch(/tea|drink/);
});

it.each([
  [
    { 'gen_ai.prompt.name': 'greet', 'gen_ai.prompt.version': '2', 'gen_ai.prompt.variable.name': 'Ada' },
    ['greet', '2', { name: 'Ada' }],
  ],
  [
    {
      'traceloop.prompt.key': 'greet',
      'traceloop.prompt.version': 3,
      'traceloop.prompt.template_variables': '{"name":"Ada"}',
    },
    ['greet', '3', { name: 'Ada' }],
  ],
  [
    {
      prompt_name: 'greet',
      'llm.prompt_template.version': 'v4',
      'llm.prompt_template.variables': '{"name":"Ada"}',
    },
    ['greet', 'v4', { name: 'Ada' }],
  ],
  [
    { 'langfuse.observation.prompt.name': 'greet', 'langfuse.observation.prompt.version': 5 },
    ['greet', '5', undefined],
  ],
])('a replay finds the prompt of %j', (named, [name, version, variables]) => {
  const span = ofAttributes({ ...CALL, ...named });
  expect([span.prompt_name, span.prompt_version]).toEqual([name, version]);
  const { prompt_name, prompt_version, prompt_variables } = span.attributes;
  expect([prompt_name, String(prompt_version), prompt_variables]).toEqual([name, version, variables]);
});

it.each([
  [{ 'gen_ai.agent.id': 'a1', 'gen_ai.agent.name': 'geo', 'gen_ai.workflow.name': 'trip' }, 'a1'],
  [{ 'gen_ai.agent.name': 'geo', 'gen_ai.workflow.name': 'trip' }, 'geo'],
  [{ 'gen_ai.workflow.name': 'trip' }, 'trip'],
])('the agent of %j is %s', (attributes, agent) => {
  const span = ofAttributes({ 'gen_ai.operation.name': 'invoke_workflow', 'gen_ai.agent.version': '7', ...attributes });
  expect(span.agent_id).toBe(agent);
  expect(span.attributes).toMatchObject({ ...attributes, 'gen_ai.agent.version': '7' });
});

test('cached, written and reasoning tokens count by the names that instrumentations in use write', () => {
  const span = ofAttributes({
    ...CALL,
    'gen_ai.usage.input_tokens': 100,
    'gen_ai.usage.output_tokens': 20,
    'gen_ai.usage.input_tokens.cached': 40,
    'gen_ai.usage.cache_write_input_tokens': 10,
    'gen_ai.usage.output_tokens.reasoning': 5,
  });
  expect([span.cached_input_tokens, span.cache_write_tokens, span.reasoning_tokens]).toEqual([40, 10, 5]);
});

test('a tool of an MCP server is one tool: the side of the client', () => {
  const sides = [{ 'mcp.method.name': 'tools/call' }, { 'gen_ai.operation.name': 'execute_tool' }].flatMap((call) =>
    [SERVER, 3].map((kind) => decoded({ attributes: { ...call, 'mcp.session.id': 's' }, kind }).kind),
  );
  expect(sides).toEqual(['event', 'tool', 'event', 'tool']);
});

test('embed() of the AI SDK is one call in what the SDK recorded, also where both spans have the tokens', () => {
  const spans = [6, 7].map((index) => decoded({ ...recordedSpan(index) }, {}, 'gen_ai'));
  expect(spans.map(({ kind, input_tokens }) => [kind, input_tokens])).toEqual([
    ['llm', 7],
    ['event', 0],
  ]);
  const tokens = { 'gen_ai.operation.name': 'embeddings', 'gen_ai.usage.input_tokens': 7 };
  const ownTracer = { 'gen_ai.operation.name': 'embeddings', 'ai.settings.context.sessionId': 's' };
  expect(ofAttributes(ownTracer).kind).toBe('event');
  expect(ofAttributes({ ...ownTracer, 'gen_ai.usage.input_tokens': 7 }).kind).toBe('llm');
  const older = ['ai.value', 'ai.values'].map((name) =>
    decoded({ attributes: { ...tokens, [name]: ['"hello"'] } }, {}, 'gen_ai'),
  );
  expect(older.map(({ kind, cost_pico_usd }) => [kind, cost_pico_usd])).toEqual([
    ['event', 0n],
    ['llm', 0n],
  ]);
});

function recordedSpan(index: number) {
  const { name, attributes } = recorded('ai', index);
  return {
    name,
    attributes: Object.fromEntries(Object.entries(attributes).filter(([key]) => key.startsWith('gen_ai.'))),
  };
}

describe('LangSmith over OpenTelemetry', () => {
  const call = {
    'langsmith.span.kind': 'llm',
    'gen_ai.operation.name': 'chat',
    'gen_ai.system': 'openai',
    'langsmith.metadata.ls_model_name': 'gpt-4o-mini',
    'langsmith.metadata.thread_id': 'thread-1',
    'langsmith.metadata.user_id': 'user-1',
    'langsmith.metadata.region': 'eu',
    'langsmith.span.tags': 'beta, eu',
    'langsmith.trace.session_name': 'shop',
    'langsmith.usage_metadata': JSON.stringify({
      input_tokens: 100,
      output_tokens: 20,
      input_token_details: { cache_read: 40 },
      output_token_details: { reasoning: 5 },
    }),
    'gen_ai.prompt': JSON.stringify({ messages: QUESTION }),
    'gen_ai.completion': JSON.stringify({ role: 'assistant', content: 'Paris.' }),
  };

  test('gives a call its model, usage, messages, metadata, session, user and tags', () => {
    const span = ofAttributes(call);
    expect(used(span)).toEqual(['llm', 'gpt-4o-mini', 100, 20, 40]);
    expect([JSON.parse(span.prompt), span.response, span.reasoning_tokens]).toEqual([QUESTION, 'Paris.', 5]);
    expect(span).toMatchObject({ session_id: 'thread-1', user_id: 'user-1', tags: ['beta', 'eu'] });
    expect(span.attributes).toMatchObject({ metadata: { region: 'eu' }, 'langsmith.project': 'shop' });
    expect(span.cost_pico_usd).toBe(24_000_000n);
    expect(JSON.stringify(span.attributes)).not.toMatch(/capital|Paris/);
  });

  test('gives the run above it no usage, and keeps its inputs and outputs', () => {
    const span = ofAttributes({
      ...call,
      'langsmith.span.kind': 'chain',
      'gen_ai.operation.name': 'chain',
      'gen_ai.prompt': '{"question":"Where?"}',
      'gen_ai.completion': '{"answer":"Here"}',
    });
    expect(used(span)).toEqual(['event', '', 0, 0, 0]);
    expect(span).toMatchObject({
      prompt: '{"question":"Where?"}',
      response: '{"answer":"Here"}',
      session_id: 'thread-1',
      cost_pico_usd: 0n,
    });
  });
});

describe('Google ADK', () => {
  const whose = {
    'gcp.vertex.agent.invocation_id': 'i1',
    'gcp.vertex.agent.session_id': 's1',
    'gcp.vertex.agent.event_id': 'e1',
  };
  const call = {
    ...whose,
    'gen_ai.system': 'gcp.vertex.agent',
    'gen_ai.request.model': 'gemini-2.5-flash',
    'gen_ai.usage.input_tokens': 100,
    'gen_ai.usage.output_tokens': 20,
    'gcp.vertex.agent.llm_request': JSON.stringify({
      model: 'gemini-2.5-flash',
      config: { system_instruction: 'Answer in one word.', temperature: 0.2 },
      contents: [{ role: 'user', parts: [{ text: 'What is the capital of France?' }] }],
    }),
    'gcp.vertex.agent.llm_response': JSON.stringify({
      content: { role: 'model', parts: [{ text: 'Paris.' }] },
      usage_metadata: {
        prompt_token_count: 100,
        candidates_token_count: 20,
        thoughts_token_count: 30,
        cached_content_token_count: 40,
      },
    }),
  };

  test('gives a call its messages, its session, and its thoughts among the output', () => {
    const span = decoded({ name: 'call_llm', attributes: call }, {}, 'gcp.vertex.agent');
    expect(used(span)).toEqual(['llm', 'gemini-2.5-flash', 100, 50, 40]);
    expect([JSON.parse(span.prompt), span.response]).toEqual([QUESTION, 'Paris.']);
    expect(span).toMatchObject({ session_id: 's1', reasoning_tokens: 30, provider: 'google' });
    // 60 at 0.30 USD for a million, 40 from the cache at 0.03, 50 out at 2.50.
    expect(span.cost_pico_usd).toBe(144_200_000n);
    expect(span.attributes['gcp.vertex.agent.llm_request']).toEqual({
      model: 'gemini-2.5-flash',
      config: { temperature: 0.2 },
    });
    expect(JSON.stringify(span.attributes)).not.toMatch(/capital|Paris|one word/);
  });

  test('counts a call once, although newer versions make a second span of it', () => {
    const inner = ofAttributes({
      ...whose,
      'gen_ai.operation.name': 'generate_content',
      'gen_ai.request.model': 'gemini-2.5-flash',
      'gen_ai.usage.input_tokens': 100,
      cost_usd: 1,
    });
    expect(inner).toMatchObject({ kind: 'event', input_tokens: 0, cost_pico_usd: 0n });
  });

  test('gives a tool its arguments and its result', () => {
    const span = ofAttributes({
      ...whose,
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'weather',
      'gcp.vertex.agent.llm_request': '{}',
      'gcp.vertex.agent.llm_response': '{}',
      'gcp.vertex.agent.tool_call_args': '{"city":"Paris"}',
      'gcp.vertex.agent.tool_response': '{"temp":21}',
    });
    expect(span).toMatchObject({ kind: 'tool', prompt: '{"city":"Paris"}', response: '{"temp":21}' });
  });
});
