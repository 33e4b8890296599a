// Local copy of an object of cold storage while it is read: fetched once, verified, then read by
// row groups. The file is unlinked at once, so nothing remains of it however the process ends.
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, rm, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { type ObjectStore, ObjectStoreError } from '../../ops/platform/object_store/object_store.ts';
import { footerBytes, layoutOf, ParquetError, type ParquetLayout, type RowGroup, TAIL_BYTES } from './parquet.ts';

/**
 * The object differs from what was verified, so a retry does not help. The message names the object
 * and the difference.
 */
export class ColdDataError extends Error {}

/** Properties that a verified object must have. */
export interface Expected {
  object_key: string;
  rows: number;
  bytes: number;
  sha256: string;
}

export class LocalFile {
  readonly #file: FileHandle;
  readonly groups: readonly RowGroup[];

  private constructor(file: FileHandle, layout: ParquetLayout) {
    this.#file = file;
    this.groups = layout.groups;
  }

  /**
   * Fetches and verifies an object.
   * @throws ColdDataError when the object is missing or differs; ObjectStoreError when it cannot be
   * read now
   */
  static async fetch(store: ObjectStore, expected: Expected, folder: string, signal: AbortSignal): Promise<LocalFile> {
    await mkdir(folder, { recursive: true });
    const name = path.join(folder, `cold-${randomUUID()}.parquet`);
    const file = await open(name, 'w+', 0o600);
    try {
      await rm(name);
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of store.get(expected.object_key, signal)) {
        hash.update(chunk);
        bytes += chunk.length;
        await file.writeFile(chunk);
      }
      compare(expected, { bytes, sha256: hash.digest('hex') });
      const layout = await layoutIn(expected.object_key, bytes, (from, until) => readAt(file, from, until));
      if (layout.rows !== expected.rows)
        throw differs(expected.object_key, `it holds ${layout.rows} texts instead of ${expected.rows}`);
      return new LocalFile(file, layout);
    } catch (error) {
      await file.close();
      throw explained(error);
    }
  }

  /** Returns a row group as a Parquet file of its own. */
  async read(group: RowGroup): Promise<Buffer> {
    return group.asFile(await readAt(this.#file, group.from, group.until));
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

/**
 * Reads an object back and verifies it, without keeping it in memory.
 * @throws ColdDataError, ObjectStoreError
 */
export async function checkObject(store: ObjectStore, expected: Expected, signal: AbortSignal): Promise<void> {
  const { object_key } = expected;
  try {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of store.get(object_key, signal)) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    compare(expected, { bytes, sha256: hash.digest('hex') });
    const layout = await layoutIn(object_key, bytes, async (from, until) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of store.get(object_key, signal, { from, until })) chunks.push(chunk);
      return Buffer.concat(chunks);
    });
    if (layout.rows !== expected.rows)
      throw differs(object_key, `it holds ${layout.rows} texts instead of ${expected.rows}`);
  } catch (error) {
    throw explained(error);
  }
}

function compare(expected: Expected, found: { bytes: number; sha256: string }): void {
  if (found.bytes !== expected.bytes)
    throw differs(expected.object_key, `it has ${found.bytes} bytes instead of ${expected.bytes}`);
  if (found.sha256 !== expected.sha256)
    throw differs(expected.object_key, 'its checksum differs from the verified one');
}

const differs = (key: string, why: string): ColdDataError => new ColdDataError(`the object ${key} is corrupt: ${why}`);

function explained(error: unknown): unknown {
  return error instanceof ObjectStoreError && error.failure === 'missing'
    ? new ColdDataError(error.message, { cause: error })
    : error;
}

/** @throws ColdDataError when the bytes are not a Parquet file */
async function layoutIn(
  key: string,
  bytes: number,
  read: (from: number, until: number) => Promise<Buffer>,
): Promise<ParquetLayout> {
  try {
    if (bytes < TAIL_BYTES) throw new ParquetError('it is too short for a Parquet file');
    const end = bytes - TAIL_BYTES;
    const footer = footerBytes(await read(end, bytes), bytes);
    return layoutOf(await read(end - footer, end));
  } catch (error) {
    if (error instanceof ParquetError)
      throw new ColdDataError(`the object ${key} is corrupt: ${error.message}`, { cause: error });
    throw error;
  }
}

async function readAt(file: FileHandle, from: number, until: number): Promise<Buffer> {
  const content = Buffer.alloc(until - from);
  for (let at = 0; at < content.length;) {
    const { bytesRead } = await file.read(content, at, content.length - at, from + at);
    if (bytesRead === 0) throw new ParquetError('it is truncated');
    at += bytesRead;
  }
  return content;
}
