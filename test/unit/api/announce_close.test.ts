// A server that is about to close says so with its responses, so that clients leave before it does.
import { Agent, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { announceClose, closeGracefully, httpServer, listen } from '../../../api/http/server.ts';

let server: Server;
let agent: Agent;
afterEach(async () => {
  await closeGracefully(server);
  agent.destroy();
});

/** Serves a listener; the returned function sends a request over a kept connection and resolves with the header. */
async function serving(listener: (res: ServerResponse) => void): Promise<() => Promise<string | undefined>> {
  server = httpServer((_req, res) => {
    listener(res);
  });
  agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const port = await listen(server, '127.0.0.1', 0);
  return async () => {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get({ port, agent }, resolve).on('error', reject);
    });
    response.resume();
    await new Promise((resolve) => response.on('end', resolve));
    return response.headers.connection;
  };
}

it('responses of a server that is about to close end their connections, and new ones are accepted', async () => {
  const ask = await serving((res) => res.end('yes'));
  expect(await ask()).toBe('keep-alive');
  announceClose(server);
  expect([await ask(), await ask()]).toEqual(['close', 'close']);
});

it('the response to a request that came before the announcement ends its connection', async () => {
  const waiting = Promise.withResolvers<ServerResponse>();
  const ask = await serving(waiting.resolve);
  const asked = ask();
  const res = await waiting.promise;
  announceClose(server);
  res.end('yes');
  expect(await asked).toBe('close');
});
