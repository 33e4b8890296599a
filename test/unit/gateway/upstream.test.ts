// One request to one upstream, against a real server: it is sent once, its answer waits for a reader,
// and it ends with its caller.
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';
import { Circuit } from '../../../ops/platform/llm/circuit.ts';
import { ask, type UpstreamAnswer } from '../../../api/intake/gateway/upstream.ts';
import { eventually } from '../../support/wait.ts';

let server: Server;
let sockets: Socket[] = [];
/** Requests that arrived, as their head and body in latin1. */
let arrived: string[] = [];

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
  [sockets, arrived] = [[], []];
});

/** Starts a server that answers each piece that arrives. */
async function target(answer: (socket: Socket, request: string) => void, more: Partial<GatewayTarget> = {}) {
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      arrived.push(chunk.toString('latin1'));
      answer(socket, chunk.toString('latin1'));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const base_url = new URL(`http://127.0.0.1:${port}/v1`);
  const plain = { api: 'openai', credential: 'operator', api_key: null, timeout_ms: 10_000, model: null } as const;
  return { ...plain, base_url, weight: null, circuit: new Circuit(() => 0), ...more };
}

/** A response whose caller can leave. */
const aCaller = () =>
  Object.assign(new EventEmitter(), { destroyed: false }) as unknown as ServerResponse & EventEmitter;
const asked = { method: 'POST', path: '/x', headers: { 'x-name': 'ÿ' }, body: Buffer.from('{}') } as const;

/** Reads an answer to its end. */
const readAll = (answer: UpstreamAnswer): Promise<[how: string, text: string]> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const ended = (how: string) => () => {
      resolve([how, Buffer.concat(chunks).toString('latin1')]);
    };
    answer.passTo({ data: (chunk) => chunks.push(chunk), end: ended('end'), lost: ended('lost') });
  });

test('a request arrives below the base URL with its headers byte for byte, and so do those of the answer', async () => {
  const to = await target((socket) =>
    socket.write('HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nX-Name: b\r\nContent-Length: 2\r\n\r\nok', 'latin1'),
  );
  const { answer } = await ask(to, asked, aCaller());
  expect(answer?.status).toBe(200);
  expect(answer?.rawHeaders.slice(0, 4)).toEqual(['X-Name', 'caf\xe9', 'X-Name', 'b']);
  expect(answer?.header('x-name')).toBe('caf\xe9, b');
  expect(answer === null ? null : await readAll(answer)).toEqual(['end', 'ok']);
  expect(arrived.join('')).toMatch(/^POST \/v1\/x HTTP\/1\.1\r\n[^]*x-name: \xff\r\n[^]*\r\n\r\n\{\}$/);
});

test('a request that a kept connection loses is not sent again', async () => {
  const to = await target((socket) => {
    if (arrived.length > 1) socket.resetAndDestroy();
    else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  });
  const first = await ask(to, asked, aCaller());
  expect(first.answer === null ? null : await readAll(first.answer)).toEqual(['end', 'ok']);
  // The connection is free again in the next turn of the event loop.
  await new Promise(setImmediate);
  expect(await ask(to, asked, aCaller())).toMatchObject({ answer: null, failed: 'lost' });
  expect([arrived.length, sockets.length]).toEqual([2, 1]);
});

test('an answer waits for its reader, whole, and is lost where the connection ends before its length', async () => {
  const body = 'x'.repeat(3_000_000);
  const to = await target((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length + (arrived.length > 1 ? 1 : 0)}\r\n\r\n${body}`);
    if (arrived.length > 1) socket.end();
  });
  for (const how of ['end', 'lost']) {
    const { answer } = await ask(to, asked, aCaller());
    if (answer === null) throw new Error('there is an answer');
    const socket = sockets.at(-1);
    // The server holds what the gateway does not take before there is a reader.
    await eventually(() => (socket?.writableLength ?? 0) < body.length, { what: 'bytes on their way' });
    const [ending, text] = await readAll(answer);
    expect([ending, text.length]).toEqual([how, body.length]);
  }
});

test('the end of the caller ends the request, before and after its answer has begun', async () => {
  const to = await target((socket) => {
    if (arrived.length > 1) socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n');
  });
  const gone = aCaller();
  const waiting = ask(to, asked, gone);
  await eventually(() => arrived.length === 1, { what: 'the request' });
  gone.emit('close');
  expect(await waiting).toMatchObject({ answer: null, failed: 'gone' });
  await eventually(() => sockets[0]?.destroyed === true, { what: 'the end of the connection' });
  const { answer } = await ask(to, asked, aCaller());
  answer?.abort();
  await eventually(() => sockets[1]?.destroyed === true, { what: 'the end of the second connection' });
});

test('an upstream that is silent or cannot be reached is reported, each as itself', async () => {
  const silent = await target(() => undefined, { timeout_ms: 20 });
  expect(await ask(silent, asked, aCaller())).toMatchObject({ answer: null, failed: 'timeout' });
  await eventually(() => sockets[0]?.destroyed === true, { what: 'the end of the connection' });
  server.close();
  await once(server, 'close');
  expect(await ask({ ...silent, timeout_ms: 10_000 }, asked, aCaller())).toMatchObject({
    answer: null,
    failed: 'lost',
  });
});

test('an early hint does not count as the answer', async () => {
  const to = await target((socket) =>
    socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok'),
  );
  const { answer } = await ask(to, asked, aCaller());
  expect(answer?.status).toBe(201);
  expect(answer === null ? null : await readAll(answer)).toEqual(['end', 'ok']);
});
