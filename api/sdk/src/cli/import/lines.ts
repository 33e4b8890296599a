// Reads a file of JSON lines without holding it: a line at a time, each within a bound.
import { createReadStream, fstatSync, openSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { UsageError } from '../command.ts';

/** Bytes of one line. */
const LINE_BYTES_MAX = 64 * 1024 ** 2;
const NEWLINE = 10;

export interface Line {
  /** From 1. */
  number: number;
  text: string;
}

export interface LineSource {
  lines: AsyncIterable<Line>;
  /** Bytes read of the file. */
  readBytes: () => number;
  /** Null where it is not known, as for standard input. */
  totalBytes: number | null;
}

/** Opens a file of lines, compressed with gzip where its name ends so; `-` is standard input. @throws UsageError */
export function openLines(file: string): LineSource {
  let read = 0;
  const { stream, totalBytes } = open(file);
  stream.on('data', (chunk: Buffer) => {
    read += chunk.length;
  });
  const text = file.endsWith('.gz') ? stream.pipe(createGunzip()) : stream;
  stream.on('error', (error) => text.destroy(error));
  return { lines: linesOf(text), readBytes: () => read, totalBytes };
}

function open(file: string): { stream: Readable; totalBytes: number | null } {
  if (file === '-') return { stream: process.stdin, totalBytes: null };
  try {
    const fd = openSync(file, 'r');
    const stats = fstatSync(fd);
    if (stats.isDirectory()) throw new Error('is a folder');
    return { stream: createReadStream(file, { fd }), totalBytes: stats.isFile() ? stats.size : null };
  } catch (cause) {
    throw new UsageError(`${file}: ${cause instanceof Error ? cause.message : ''}`, { cause });
  }
}

async function* linesOf(stream: AsyncIterable<unknown>): AsyncGenerator<Line> {
  let parts: Buffer[] = [];
  let [bytes, number] = [0, 0];
  const take = (): Line => {
    const text = Buffer.concat(parts).toString('utf8');
    parts = [];
    bytes = 0;
    number += 1;
    return { number, text: number === 1 ? text.replace(/^\u{FEFF}/u, '') : text };
  };
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      parts.push(chunk.subarray(from, end));
      yield take();
      from = end + 1;
    }
    parts.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > LINE_BYTES_MAX)
      throw new UsageError(
        `line ${number + 1} is longer than ${LINE_BYTES_MAX / 1024 ** 2} MiB; the file must have one JSON document a line`,
      );
  }
  if (bytes > 0) yield take();
}
