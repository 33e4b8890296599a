import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { watchForStall } from '../../../api/telemetry/analysts/stalled.ts';

const LOOK_MS = 100;
let server: Server | null = null;
let socket: Socket | null = null;

afterEach(() => {
  socket?.destroy();
  server?.close();
});

/** Starts an answer whose caller reads it with `read`. */
async function answerTo(read: (caller: Socket) => void): Promise<ServerResponse> {
  return new Promise((resolve) => {
    server = createServer((_, res) => {
      resolve(res);
    });
    server.listen(0, '127.0.0.1', () => {
      socket = connect((server?.address() as AddressInfo).port, '127.0.0.1', () => {
        socket?.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      });
      read(socket);
    });
  });
}

/** Writes until `signal` aborts or `bytes` have been written. */
async function writeUntil(res: ServerResponse, signal: AbortSignal, bytes: number): Promise<void> {
  const chunk = Buffer.alloc(256 * 1024);
  for (let written = 0; written < bytes && !signal.aborted; written += chunk.length)
    if (!res.write(chunk))
      await new Promise<void>((resolve) => {
        res.once('drain', resolve);
        signal.addEventListener('abort', () => {
          resolve();
        });
      });
}

it('notices a caller that reads nothing', async () => {
  const res = await answerTo((caller) => caller.pause());
  const watch = watchForStall(res, LOOK_MS);
  await writeUntil(res, watch.signal, Infinity);
  watch.stop();
  expect(watch.signal.aborted).toBe(true);
});

it('leaves alone a caller that reads everything, and one for whom no bytes wait', async () => {
  const res = await answerTo((caller) => caller.resume());
  const watch = watchForStall(res, LOOK_MS);
  await writeUntil(res, watch.signal, 64 * 1024 * 1024);
  await delay(3 * LOOK_MS);
  watch.stop();
  expect(watch.signal.aborted).toBe(false);
});
