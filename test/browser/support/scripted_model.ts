// The model behind the service of the browser tests. Tests run in other processes than this server, so
// the request says how it answers: with the name of the model and the last message, word by word where
// a stream is asked for, and after a fixed sentence otherwise. A message that contains [hold] is
// answered up to there, and the stream stays open until the caller leaves; [fail] is answered with an
// error of the provider. A request for a judgement (response_format) gets one: a low score if the
// judged text is unhelpful, as the answers of `model-small` about lamps are.
import type { ServerResponse } from 'node:http';
import { type ModelBehaviour, type ModelServer, startModelServer } from '../../support/model_server.ts';

interface Asked {
  model: string;
  messages: { role: string; content: string }[];
  stream?: boolean;
  response_format?: unknown;
}

const USAGE = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };

const chunk = (model: string, choices: unknown[], more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-test', object: 'chat.completion.chunk', created: 1, model, choices, ...more })}\n\n`;

function stream(res: ServerResponse, model: string, text: string): void {
  const [said = '', held] = text.split('[hold]', 2);
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const word of said.match(/\S*\s*/g) ?? [])
    if (word !== '') res.write(chunk(model, [{ index: 0, delta: { content: word }, finish_reason: null }]));
  if (held !== undefined) return;
  res.write(chunk(model, [{ index: 0, delta: {}, finish_reason: 'stop' }]));
  res.write(chunk(model, [], { usage: USAGE }));
  res.end('data: [DONE]\n\n');
}

const behaviour: ModelBehaviour = (res, { method, body }) => {
  if (method === 'GET') {
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data: [] }));
    return;
  }
  const asked = JSON.parse(body.toString('utf8')) as Asked;
  const last = asked.messages.at(-1)?.content ?? '';
  if (last.includes('[fail]')) {
    const error = { message: 'The provider has no such model.', type: 'invalid_request_error', code: 'no_model' };
    res.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
    return;
  }
  const said =
    asked.model === 'model-small' && last.includes('lamp')
      ? 'An unhelpful answer of model-small'
      : `${asked.model} answers: ${last}`;
  if (asked.stream === true) {
    stream(res, asked.model, said);
    return;
  }
  const judgement = last.includes('unhelpful')
    ? { score: 1, reason: 'It does not help.' }
    : { score: 4, reason: 'It answers the question.' };
  const text =
    asked.response_format === undefined ? `The model of the tests answers. ${said}` : JSON.stringify(judgement);
  const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }];
  res.writeHead(200, { 'content-type': 'application/json' }).end(
    JSON.stringify({
      id: 'chatcmpl-test',
      object: 'chat.completion',
      created: 1,
      model: asked.model,
      choices,
      usage: USAGE,
    }),
  );
};

/** Starts the model. The caller closes it. */
export async function startScriptedModel(): Promise<ModelServer> {
  const server = await startModelServer();
  server.behave(behaviour);
  return server;
}
