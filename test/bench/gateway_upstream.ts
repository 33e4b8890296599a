// An upstream as a process of its own, which answers every request at once with one completion, or
// with one message where the path is Anthropic's. In:
// the port as its argument. Out: one message to its parent when it listens.
import { createServer } from 'node:http';
import { die } from '../../ops/platform/leave.ts';

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

const server = createServer((req, res) => {
  req.resume();
  req.on('end', () => {
    const body = req.url?.startsWith('/v1/messages') === true ? message : answer;
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length) });
    res.end(body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2]), '127.0.0.1', () => process.send?.('listening'));
process.on('disconnect', die);
