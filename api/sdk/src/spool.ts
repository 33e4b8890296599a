// Bodies that the service has not taken yet, as files: one body a file, complete or absent. They
// survive the process. A body that is sent twice is stored once by the service, so two processes
// may share a folder without locks.
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

const BYTES_MAX = 64 * 1024 ** 2;
/** The service recognises a repeated body for a day; older ones could be counted twice. */
const AGE_MS_MAX = 24 * 3_600_000;
const ENDING = '.otlp';

export interface SpoolOptions {
  /** Folder; default: millrace-spool in the folder for temporary files. */
  dir?: string;
  /** Bytes of all files; the oldest are dropped first. Default: 64 MiB. */
  maxBytes?: number;
}

interface Entry {
  file: string;
  bytes: number;
  /** Milliseconds since the epoch. */
  at: number;
}

/** Bodies of one receiver: the same address and key. */
export class Spool {
  readonly #dir: string;
  readonly #bytesMax: number;
  #written = 0;
  /** Files dropped because they were too old or too many. */
  dropped = 0;

  constructor(receiver: string, options: SpoolOptions = {}) {
    const name = createHash('sha256').update(receiver).digest('hex').slice(0, 16);
    this.#dir = path.join(options.dir ?? path.join(tmpdir(), 'millrace-spool'), name);
    this.#bytesMax = options.maxBytes ?? BYTES_MAX;
  }

  /**
   * Writes a body and returns when it is on the disk.
   * @throws Error of the file system; the body is not kept then
   */
  async add(body: Uint8Array, now = Date.now()): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    this.#written += 1;
    const name = `${String(now).padStart(15, '0')}-${process.pid}-${this.#written}`;
    const [partial, whole] = [path.join(this.#dir, `${name}.part`), path.join(this.#dir, name + ENDING)];
    const file = await open(partial, 'wx', 0o600);
    try {
      await file.writeFile(body);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(partial, whole);
    const folder = await open(this.#dir, 'r');
    await folder.sync().finally(() => folder.close());
    await this.#bound(now);
  }

  /** Returns the files, the oldest first. */
  async entries(): Promise<Entry[]> {
    const names = await readdir(this.#dir).catch(() => []);
    const entries = await Promise.all(
      names
        .filter((name) => name.endsWith(ENDING))
        .map(async (name) => {
          const file = path.join(this.#dir, name);
          const bytes = await stat(file).then(
            ({ size }) => size,
            () => 0,
          );
          return { file, bytes, at: Number(name.split('-', 1)[0]) };
        }),
    );
    return entries.sort((a, b) => a.at - b.at || (a.file < b.file ? -1 : 1));
  }

  /** Returns a body; null if another process has sent it meanwhile. */
  async read(entry: Entry): Promise<Uint8Array | null> {
    return readFile(entry.file).catch(() => null);
  }

  /** Removes a body that the service has taken. */
  async remove(entry: Entry): Promise<void> {
    await rm(entry.file, { force: true });
  }

  async #bound(now: number): Promise<void> {
    const entries = await this.entries();
    let bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
    for (const entry of entries) {
      if (bytes <= this.#bytesMax && now - entry.at <= AGE_MS_MAX) break;
      await this.remove(entry);
      bytes -= entry.bytes;
      this.dropped += 1;
    }
  }
}
