// Stores objects as files of a folder. A file is written beside its place, synced and renamed, so a
// file under its final name is always complete.
import { createReadStream } from 'node:fs';
import { mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { type ObjectFailure, type ObjectStore, ObjectStoreError, type StoredObject } from './object_store.ts';

/** Suffix of a file that is being written; such files are never listed or read. */
const PARTIAL = '.partial';
const READ_BYTES = 256 * 1024;
const REFUSED = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'EFBIG']);

export class FileStore implements ObjectStore {
  readonly place: string;
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.place = `file://${folder}`;
  }

  async put(key: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    const file = this.#fileOf(key);
    const partial = file + PARTIAL;
    const failed = (error: unknown): never => {
      throw failureOf(error, `${key} cannot be written to ${this.place}`);
    };
    await mkdir(path.dirname(file), { recursive: true }).catch(failed);
    const handle = await open(partial, 'w').catch(failed);
    try {
      for await (const chunk of content) {
        signal.throwIfAborted();
        await handle.writeFile(chunk).catch(failed);
      }
      await handle.sync().catch(failed);
    } catch (error) {
      await handle.close();
      await rm(partial, { force: true });
      throw error;
    }
    await handle.close();
    await rename(partial, file).catch(failed);
    await syncFolders(path.dirname(file), this.#folder).catch(failed);
  }

  async *get(key: string, signal: AbortSignal, range?: { from: number; until: number }): AsyncIterable<Uint8Array> {
    const bounds = range === undefined ? {} : { start: range.from, end: range.until - 1 };
    const stream = createReadStream(this.#fileOf(key), { ...bounds, highWaterMark: READ_BYTES, signal });
    try {
      for await (const chunk of stream) yield chunk as Buffer;
    } catch (error) {
      signal.throwIfAborted();
      throw failureOf(error, `${key} cannot be read from ${this.place}`);
    }
  }

  async stat(key: string): Promise<StoredObject | null> {
    try {
      const { size } = await stat(this.#fileOf(key));
      return { key, bytes: size };
    } catch (error) {
      const failure = failureOf(error, `${key} cannot be found in ${this.place}`);
      if (failure.failure === 'missing') return null;
      throw failure;
    }
  }

  async delete(key: string): Promise<void> {
    for (const file of [this.#fileOf(key), this.#fileOf(key) + PARTIAL]) {
      await rm(file, { force: true }).catch((error: unknown) => {
        throw failureOf(error, `${key} cannot be deleted from ${this.place}`);
      });
    }
  }

  async *list(prefix: string, signal: AbortSignal): AsyncIterable<StoredObject> {
    // The folder that holds every object with the prefix.
    const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
    let entries;
    try {
      entries = await opendir(path.join(this.#folder, folder), { recursive: true });
    } catch (error) {
      const failure = failureOf(error, `${prefix} cannot be listed in ${this.place}`);
      if (failure.failure === 'missing') return;
      throw failure;
    }
    for await (const entry of entries) {
      signal.throwIfAborted();
      if (!entry.isFile() || entry.name.endsWith(PARTIAL)) continue;
      const key = path.relative(this.#folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/');
      const found = key.startsWith(prefix) ? await this.stat(key) : null;
      if (found !== null) yield found;
    }
  }

  close(): void {
    // No resource is held between two calls.
  }

  #fileOf(key: string): string {
    const file = path.resolve(this.#folder, key);
    if (!file.startsWith(this.#folder + path.sep))
      throw new ObjectStoreError('refused', `${key} is no key of ${this.place}`);
    return file;
  }
}

/**
 * Syncs the folders from the given one up to the store's own, so that the names of new files and
 * folders survive power loss.
 */
async function syncFolders(folder: string, top: string): Promise<void> {
  for (let at = folder; at.startsWith(top); at = path.dirname(at)) {
    const handle = await open(at, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
}

function failureOf(error: unknown, what: string): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const failure: ObjectFailure = code === 'ENOENT' ? 'missing' : REFUSED.has(code) ? 'refused' : 'unavailable';
  return new ObjectStoreError(
    failure,
    failure === 'missing' ? `${what}: there is no such object` : `${what}: ${messageOf(error)}`,
    error,
  );
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
