// One keep-alive HTTP connection that sends prepared bodies as they are: no objects, no streams,
// and only status and length are parsed. The load generator shares its cores with the service, so
// each microsecond here is one that the service lacks.
import { connect, type Socket } from 'node:net';

export interface LaneTarget {
  host: string;
  port: number;
  /** Header lines without length, each ending in CRLF. */
  headers: string;
}

interface Waiting {
  resolve(status: number): void;
  reject(error: Error): void;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;
/** The end of a body in chunks. */
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

/** Returns a request head for a path; all bodies of a template have the same length. */
export function requestHead(target: LaneTarget, method: string, path: string, length: number): Buffer {
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nHost: ${target.host}:${target.port}\r\n${target.headers}Content-Length: ${length}\r\n\r\n`,
  );
}

export class Lane {
  readonly #socket: Socket;
  #waiting: Waiting | null = null;
  #head: Buffer = Buffer.alloc(0);
  /**
   * Remaining bytes of the answer's body; Infinity until the last chunk of a body in chunks, null
   * while the head is incomplete.
   */
  #left: number | null = null;
  /** The newest bytes of a body in chunks, as many as its end has. */
  #tail: Buffer = Buffer.alloc(0);
  #status = 0;

  constructor({ host, port }: LaneTarget) {
    this.#socket = connect({ host, port, noDelay: true });
    this.#socket.on('data', (chunk: Buffer) => {
      this.#read(chunk);
    });
    const fail = (error: Error): void => {
      this.#waiting?.reject(error);
      this.#waiting = null;
    };
    this.#socket.on('error', fail);
    this.#socket.on('close', () => {
      fail(new Error('connection closed'));
    });
  }

  get usable(): boolean {
    return !this.#socket.destroyed;
  }

  /**
   * Sends one request and resolves with the answer's status once all of it was read. One at a time.
   */
  send(head: Buffer, body: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#left = null;
      this.#head = Buffer.alloc(0);
      this.#socket.cork();
      this.#socket.write(head);
      this.#socket.write(body);
      this.#socket.uncork();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    let body: Buffer = chunk;
    if (this.#left === null) {
      this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
      const end = this.#head.indexOf(HEAD_END);
      if (end < 0) return;
      const text = this.#head.toString('latin1', 0, end);
      this.#status = Number(text.slice(9, 12));
      const length = LENGTH.exec(text)?.[1];
      if (length === undefined && !CHUNKED.test(text)) {
        this.#socket.destroy(new Error('an answer without Content-Length that is not chunked'));
        return;
      }
      this.#left = length === undefined ? Infinity : Number(length);
      this.#tail = Buffer.alloc(0);
      body = this.#head.subarray(end + HEAD_END.length);
    }
    if (this.#left === Infinity) {
      this.#tail = Buffer.concat([this.#tail, body]).subarray(-LAST_CHUNK.length);
      if (!this.#tail.equals(LAST_CHUNK)) return;
    } else {
      this.#left -= body.length;
      if (this.#left > 0) return;
    }
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.resolve(this.#status);
  }
}
