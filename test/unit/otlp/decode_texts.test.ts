// The OTLP decoder stores a text once, wherever a span repeats it.
import { expect, it } from 'vitest';
import { CALL, ofAttributes } from './decoding.ts';

const asked = {
  'gen_ai.input.messages': JSON.stringify([{ role: 'user', parts: [{ type: 'text', content: 'Where is it?' }] }]),
};
const answered = {
  'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts: [{ type: 'text', content: 'In Lisbon.' }] }]),
};
const request = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Where is it?' }] });
const chosen = JSON.stringify({ choices: [{ message: { content: 'In Lisbon.' } }] });

it.each([
  ['OpenInference', { 'input.value': request, 'output.value': chosen }],
  ['OpenInference, of one message only', { 'input.value': 'Where is it?', 'output.value': 'In Lisbon.' }],
  ['OpenLLMetry', { 'traceloop.entity.input': JSON.stringify(request), 'traceloop.entity.output': chosen }],
  [
    'the AI SDK',
    {
      'ai.prompt': request,
      'ai.prompt.messages': '[{"role":"user","content":"Where is it?"}]',
      'ai.response.text': 'In Lisbon.',
    },
  ],
  [
    'older names',
    {
      'gen_ai.prompt.0.role': 'user',
      'gen_ai.prompt.0.content': 'Where is it?',
      'gen_ai.completion.0.content': 'In Lisbon.',
    },
  ],
  [
    'numbered messages',
    { 'llm.input_messages.0.message.content': 'Where is it?', 'llm.output_messages.0.message.content': 'In Lisbon.' },
  ],
])('a text that a call or a run repeats is stored once: %s', (_, again) => {
  for (const of of [CALL, { 'gen_ai.operation.name': 'invoke_agent' }]) {
    const span = ofAttributes({ ...of, ...again, ...asked, ...answered });
    expect(span).toMatchObject({ prompt: '[{"role":"user","content":"Where is it?"}]', response: 'In Lisbon.' });
    expect(JSON.stringify(span.attributes)).not.toMatch(/Where|Lisbon/);
  }
});

it('input.value and output.value are prompt and response where nothing else is, and are stored once', () => {
  const span = ofAttributes({
    ...CALL,
    'input.value': request,
    'output.value': chosen,
    'gen_ai.output.messages': '[]',
  });
  expect([span.prompt, span.response]).toEqual([request, chosen]);
  expect(JSON.stringify(span.attributes)).not.toMatch(/Where|Lisbon/);
  const cut = ofAttributes({
    ...CALL,
    'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"te',
    'gen_ai.output.messages': '[]',
  });
  expect([cut.prompt, cut.attributes['gen_ai.input.messages'], cut.response]).toEqual([
    '[{"role":"user","parts":[{"type":"te',
    undefined,
    '',
  ]);
});

it('the system instructions stand before the conversation, whatever attributes hold them', () => {
  const conversation = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Where is it?' },
  ];
  for (const said of [
    { 'input.value': 'Where is it?' },
    { 'gen_ai.prompt.0.role': 'user', 'gen_ai.prompt.0.content': 'Where is it?' },
    asked,
  ]) {
    const span = ofAttributes({ ...CALL, 'gen_ai.system_instructions': 'Be brief.', ...said });
    expect(JSON.parse(span.prompt)).toEqual(conversation);
    expect(JSON.stringify(span.attributes)).not.toMatch(/brief|Where/);
  }
});

it('the text of an embedding is its prompt and is stored once', () => {
  const embedding = { 'openinference.span.kind': 'EMBEDDING', 'embedding.embeddings.0.embedding.text': 'hello' };
  for (const more of [{}, { 'input.value': 'hello' }]) {
    const span = ofAttributes({ ...embedding, ...more });
    expect([span.prompt, JSON.stringify(span.attributes).includes('hello')]).toEqual(['hello', false]);
  }
});

it('attributes that do not repeat a text of the span stay', () => {
  const other = {
    'llm.invocation_parameters': '{"temperature":0}',
    'llm.prompt_template.template': 'Where is {{what}}?',
    'gen_ai.prompt.name': 'where',
    'gen_ai.tool.call.arguments': '{"city":"Porto"}',
    'ai.prompt.tools': ['{"name":"map"}'],
  };
  expect(ofAttributes({ ...CALL, ...asked, ...answered, ...other }).attributes).toMatchObject(other);
  // The input of a run may be another one than that of its conversation.
  const run = {
    'gen_ai.operation.name': 'invoke_agent',
    'traceloop.entity.input': '{"args":["Porto"],"kwargs":{"verbose":true}}',
  };
  expect(ofAttributes({ ...run, ...asked }).attributes).toMatchObject(run);
});

it('the text of an answer with an image is taken out of the attribute, and the image stays', () => {
  const picture = { type: 'image', uri: 'https://example.com/a.png' };
  const parts = [{ type: 'text', content: 'In Lisbon.' }, picture];
  const span = ofAttributes({ ...CALL, 'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts }]) });
  expect(span.response).toBe('In Lisbon.');
  expect(span.attributes['gen_ai.output.messages']).toEqual([{ role: 'assistant', parts: [picture] }]);
});

it('arguments and result of a tool call are stored once', () => {
  const tool = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.call.arguments': '{"n":7}',
    'input.value': '{"n":7}',
  };
  const span = ofAttributes({ ...tool, 'gen_ai.tool.call.result': '"Lisbon"', 'output.value': '{"city":"Lisbon"}' });
  expect(span).toMatchObject({ prompt: '{"n":7}', response: '"Lisbon"' });
  expect(span.attributes).not.toHaveProperty('input.value');
  expect(span.attributes).not.toHaveProperty('output.value');
});
