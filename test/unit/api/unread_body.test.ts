// Answers to requests whose bodies nobody reads: every client can read them, whatever it does
// first, within bounds.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { readBody } from '../../../api/http/body.ts';
import { DISCARD_BYTES_MAX, DISCARDING_MAX, discardBody } from '../../../api/http/unread_body.ts';
import { listening } from '../../support/listening.ts';
import { chunks, pieces, writeThenRead } from '../../support/raw_request.ts';
import { eventually } from '../../support/wait.ts';

const MB = 1_000_000;
const portOf = (url: string): number => Number(new URL(url).port);

/**
 * Answers with the status of the path after discarding the body; /read reads it, /early answers 200
 * without reading it.
 */
async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const status = Number(req.url?.slice(1));
  if (req.url === '/read') {
    const body = await readBody(req, { bytesMax: 5 * MB }).catch(() => null);
    if (body === null) await discardBody(req, res, 413);
    answer(res, body === null ? 413 : 200);
  } else if (req.url === '/early') answer(res, 200);
  else {
    await discardBody(req, res, status);
    answer(res, status);
  }
}

function answer(res: ServerResponse, status: number): void {
  res.writeHead(status, { 'Content-Length': 6 });
  res.end('answer');
}

const served = <T>(ask: (port: number) => Promise<T>): Promise<T> =>
  listening(
    (req, res) => void serve(req, res),
    (url) => ask(portOf(url)),
  );

const post = (path: string, ...headers: string[]): string[] => [`POST ${path} HTTP/1.1`, 'Host: a', ...headers];

describe('a client that writes its whole body before it reads', () => {
  test.each([401, 413, 429].flatMap((status) => [5, 20, 60].map((size) => [status, size] as const)))(
    'a client that writes its whole body first reads a %i after %i MB with Connection: close',
    async (status, size) => {
      await served(async (port) => {
        for (const halfClose of [false, true]) {
          const head = post(`/${status}`, 'Connection: close', `Content-Length: ${size * MB}`);
          const got = await writeThenRead(port, { head, pieces: pieces(size * MB), halfClose });
          expect([got.status, got.body, got.error, /^connection: close$/im.test(got.head)]).toEqual([
            status,
            'answer',
            null,
            true,
          ]);
        }
      });
    },
  );

  test('a client that writes first reads a rejection of a chunked body, and of a body longer than what is read', async () => {
    await served(async (port) => {
      for (const [path, status] of [
        ['/read', 413],
        ['/401', 401],
      ] as const) {
        const got = await writeThenRead(port, {
          head: post(path, 'Connection: close', 'Transfer-Encoding: chunked'),
          pieces: chunks(20 * MB),
        });
        expect([got.status, got.body, got.error]).toEqual([status, 'answer', null]);
      }
    });
  });

  test('a client that writes first reads an answer that was sent before any of the body was read', async () => {
    await served(async (port) => {
      const head = post('/early', 'Connection: close', `Content-Length: ${20 * MB}`);
      const got = await writeThenRead(port, { head, pieces: pieces(20 * MB) });
      expect([got.status, got.body, got.error]).toEqual([200, 'answer', null]);
    });
  });

  test('a client reads the rejection when it sends less than it announced and closes its half', async () => {
    await served(async (port) => {
      const head = post('/413', `Content-Length: ${60 * MB}`);
      const got = await writeThenRead(port, { head, pieces: pieces(MB), halfClose: true });
      expect([got.status, got.body, got.error]).toEqual([413, 'answer', null]);
    });
  });

  test('a client reads the rejection when its chunks turn out to be malformed', async () => {
    await served(async (port) => {
      const head = post('/401', 'Transfer-Encoding: chunked');
      const got = await writeThenRead(port, { head, pieces: ['5\r\nhello\r\n', 'no chunk\r\n'] });
      expect([got.status, got.body]).toEqual([401, 'answer']);
    });
  });
});

describe('the connection', () => {
  test('a connection stays open after a rejection whose body was discarded whole, and closes after a 413', async () => {
    await served(async (port) => {
      const twice = (first: string) =>
        writeThenRead(port, {
          head: post(first, 'Content-Length: 5'),
          pieces: ['hello', `${post('/401', 'Connection: close', 'Content-Length: 0').join('\r\n')}\r\n\r\n`],
        });
      expect((await twice('/403')).body).toMatch(/^answerHTTP\/1\.1 401 /);
      expect((await twice('/413')).body).toBe('answer');
    });
  });

  test('a connection serves no request that follows an answer with Connection: close', async () => {
    const urls: string[] = [];
    await listening(
      (req, res) => {
        urls.push(req.url ?? '');
        res.setHeader('Connection', 'close');
        answer(res, 200);
      },
      async (url) => {
        const rest = 'hello'.repeat(1000);
        const socket = connect(portOf(url), '127.0.0.1');
        socket.write(`${post('/first', `Content-Length: ${rest.length}`).join('\r\n')}\r\n\r\n`);
        await new Promise((resolve) => socket.once('data', resolve));
        socket.write(`${rest}${post('/second', 'Content-Length: 0').join('\r\n')}\r\n\r\n`);
        await new Promise((resolve) => socket.once('close', resolve).on('error', () => undefined));
      },
    );
    expect(urls).toEqual(['/first']);
  });
});

describe('100 Continue', () => {
  test('100 Continue is not sent to a client whose request is rejected, which then sends nothing', async () => {
    await served(async (port) => {
      for (const path of ['/401', '/read']) {
        const got = await new Promise<{ status: number; continued: boolean; connection: string | undefined }>(
          (resolve, reject) => {
            let continued = false;
            const sent = request({
              port,
              path,
              method: 'POST',
              headers: { Expect: '100-continue', 'Content-Length': String(20 * MB) },
            });
            sent.on('continue', () => (continued = true)).on('error', reject);
            sent.on('response', (res) => {
              res.resume();
              resolve({ status: res.statusCode ?? 0, continued, connection: res.headers.connection });
              sent.destroy();
            });
            sent.flushHeaders();
          },
        );
        expect([path, got]).toEqual([
          path,
          { status: path === '/read' ? 413 : 401, continued: false, connection: 'close' },
        ]);
      }
    });
  });

  test('100 Continue is sent to a client whose body is wanted', async () => {
    await served(async (port) => {
      const status = await new Promise<number>((resolve, reject) => {
        const sent = request({
          port,
          path: '/read',
          method: 'POST',
          headers: { Expect: '100-continue', 'Content-Length': '5' },
        });
        sent.on('continue', () => sent.end('hello')).on('error', reject);
        sent.on('response', (res) => {
          res.resume();
          resolve(res.statusCode ?? 0);
        });
        sent.flushHeaders();
      });
      expect(status).toBe(200);
    });
  });
});

describe('bounds', () => {
  test('a sender that never ends is answered, and its connection closed', async () => {
    await served(async (port) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      const heard: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => heard.push(chunk));
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.write(`${post('/401', `Content-Length: ${MB}`).join('\r\n')}\r\n\r\n`);
      await closed;
      expect(Buffer.concat(heard).toString()).toMatch(/^HTTP\/1\.1 401 [^]*connection: close[^]*answer$/i);
    });
  });

  test('at most DISCARD_BYTES_MAX of one request are read', async () => {
    let read = 0;
    await listening(
      (req, res) => {
        req.socket.once('close', () => (read = req.socket.bytesRead));
        void serve(req, res);
      },
      async (url) => {
        const size = DISCARD_BYTES_MAX * 3;
        const got = await writeThenRead(portOf(url), {
          head: post('/413', `Content-Length: ${size}`),
          pieces: pieces(size),
        });
        expect([0, 413]).toContain(got.status);
        await eventually(() => read > 0, { what: 'the end of the connection' });
      },
    );
    // The kernel and the parser have read some bytes ahead.
    expect(read).toBeLessThan(DISCARD_BYTES_MAX * 1.1);
  });

  test('senders beyond DISCARDING_MAX are answered at once', async () => {
    await served(async (port) => {
      const sockets: Socket[] = [];
      try {
        const answered = Array.from({ length: DISCARDING_MAX + 1 }, () => {
          const socket = connect(port, '127.0.0.1');
          sockets.push(socket);
          socket.on('error', () => undefined);
          socket.write(`${post('/401', `Content-Length: ${MB}`).join('\r\n')}\r\n\r\nsome`);
          return new Promise<Socket>((resolve) =>
            socket.once('data', () => {
              resolve(socket);
            }),
          );
        });
        const first = await Promise.race(answered);
        // All but one sender wait while their bodies are read.
        expect(sockets.filter((socket) => socket.bytesRead > 0)).toEqual([first]);
        await Promise.all(answered);
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    });
  });
});
