// An upstream as a process of its own, which answers every request at once with one completion, or
// with one message where the path is Anthropic's; as a stream of events where the User-Agent says so. In:
// the port as its argument. Out: one message to its parent when it listens.
import { createServer } from 'node:http';
import { die } from '../../ops/platform/leave.ts';
import { STREAMING } from './gateway_calls.ts';

const answer = Buffer.from(
  JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'gpt-4o-mini-2024-07-18',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'The capital of France is Paris. '.repeat(20), refusal: null },
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 180, completion_tokens: 140, total_tokens: 320 },
  }),
);

const message = Buffer.from(
  JSON.stringify({
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5-20250929',
    content: [{ type: 'text', text: 'The capital of France is Paris. '.repeat(20) }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 180, output_tokens: 140 },
  }),
);

const PIECE = 'The capital of France is Paris. ';
const PIECES = 20;
const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const named = (type: string, more: object): string => `event: ${type}\n${event({ type, ...more })}`;

/** Pieces of a streamed completion, written one by one. */
const answerEvents = [
  ...Array.from({ length: PIECES }, () => event(chunk([{ index: 0, delta: { content: PIECE }, finish_reason: null }]))),
  event(chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])),
  event({ ...chunk([]), usage: { prompt_tokens: 180, completion_tokens: 140, total_tokens: 320 } }),
  'data: [DONE]\n\n',
];

const messageEvents = [
  named('message_start', started()),
  named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  ...Array.from({ length: PIECES }, () =>
    named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: PIECE } }),
  ),
  named('content_block_stop', { index: 0 }),
  named('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 140 } }),
  named('message_stop', {}),
];

function chunk(choices: unknown[]): object {
  const model = 'gpt-4o-mini-2024-07-18';
  return { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model, choices };
}

function started(): object {
  const head = JSON.parse(message.toString()) as object;
  return { message: { ...head, content: [], stop_reason: null, usage: { input_tokens: 180, output_tokens: 1 } } };
}

const server = createServer((req, res) => {
  const isMessages = req.url?.startsWith('/v1/messages') === true;
  const isStream = req.headers['user-agent'] === STREAMING;
  req.resume();
  req.on('end', () => {
    if (isStream) {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const piece of isMessages ? messageEvents : answerEvents) res.write(piece);
      res.end();
      return;
    }
    const body = isMessages ? message : answer;
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length) });
    res.end(body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2]), '127.0.0.1', () => process.send?.('listening'));
process.on('disconnect', die);
