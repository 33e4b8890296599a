// A disk of its own for a run: ext4 in a file, mounted by a loop device. It can be filled up, and
// it can lose power: the file system is shut down at once without writing its journal or anything
// else (ext4's own means for such tests), so what was not synced is gone. It needs Linux and the
// right to mount (root). close() leaves nothing mounted and no file.
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { DataType, load, open } from 'ffi-rs';
import { removeDir, tempDir } from '../support/temp.ts';

const MIB = 1024 ** 2;
/** EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32). */
const SHUTDOWN = 0x8004_587d;
/** EXT4_GOING_FLAGS_NOLOGFLUSH: immediately, without flushing the journal. */
const WITHOUT_JOURNAL = 2;
/** e2fsck's exit codes up to this one report that everything was repaired. */
const MENDED_MAX = 1;

export class SmallDisk {
  readonly #dir = tempDir('chaos-disk');
  readonly #image: string;
  /** Where it is mounted. */
  readonly folder: string;

  /** @throws Error when it cannot be created or mounted */
  constructor(mebibytes: number) {
    this.#image = path.join(this.#dir, 'image');
    this.folder = path.join(this.#dir, 'mounted');
    mkdirSync(this.folder);
    writeFileSync(this.#image, '');
    truncateSync(this.#image, mebibytes * MIB);
    try {
      run('mkfs.ext4', ['-q', '-F', this.#image]);
      this.#mount();
    } catch (cause) {
      removeDir(this.#dir);
      throw new Error('this fault needs a disk of its own: Linux, mkfs.ext4, and root to mount it', { cause });
    }
  }

  /** Bytes that a process may still write. */
  get free(): number {
    const { bsize, bavail } = statfsSync(this.folder);
    return bsize * bavail;
  }

  /** Fills the disk except for `leaveBytes`. */
  fillUp(leaveBytes: number): void {
    const ballast = path.join(this.folder, 'ballast');
    const most = this.free - leaveBytes - 16 * MIB;
    if (most > 0) run('fallocate', ['-l', String(most), ballast]);
    const file = openSync(ballast, 'a');
    const block = Buffer.alloc(64 * 1024);
    try {
      while (this.free - block.length >= leaveBytes && writeSync(file, block) === block.length);
    } catch {
      // Other processes have taken the rest meanwhile.
    } finally {
      closeSync(file);
    }
  }

  freeAll(): void {
    rmSync(path.join(this.folder, 'ballast'), { force: true });
  }

  /**
   * Cuts the power: nothing reaches the disk from now on, and what was in memory never will. Every
   * process on it must be ended then.
   */
  cut(): void {
    this.#leave('synced', true);
    this.#leave('not-synced', false);
    open({ library: 'libc', path: '' });
    const flags = Buffer.alloc(4);
    flags.writeUInt32LE(WITHOUT_JOURNAL);
    const dir = openSync(this.folder, 'r');
    const result = load({
      library: 'libc',
      funcName: 'ioctl',
      retType: DataType.I32,
      paramsType: [DataType.I32, DataType.I64, DataType.U8Array],
      paramsValue: [dir, SHUTDOWN, flags],
    });
    closeSync(dir);
    if (result !== 0) throw new Error('the file system could not be shut down');
  }

  /**
   * Restores the power: the journal is replayed, the file system checked and mounted again. Returns
   * the check's output.
   */
  recover(): string {
    run('umount', [this.folder]);
    const said = check(this.#image);
    this.#mount();
    const left = ['synced', 'not-synced'].map(
      (name) => existsSync(path.join(this.folder, name)) && statSync(path.join(this.folder, name)).size > 0,
    );
    if (left[0] !== true || left[1] === true)
      throw new Error('the disk did not lose its power: what was not synced is there, or what was is not');
    rmSync(path.join(this.folder, 'synced'));
    return said;
  }

  /** Writes a file that later shows what the power loss took. */
  #leave(name: string, synced: boolean): void {
    rmSync(path.join(this.folder, name), { force: true });
    const file = openSync(path.join(this.folder, name), 'w');
    writeSync(file, 'as it was');
    if (synced) fsyncSync(file);
    closeSync(file);
  }

  close(): void {
    try {
      run('umount', ['--lazy', this.folder]);
    } catch {
      // It was not mounted.
    }
    removeDir(this.#dir);
  }

  #mount(): void {
    run('mount', ['-o', 'loop', this.#image, this.folder]);
  }
}

const run = (command: string, args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

function check(image: string): string {
  try {
    return run('e2fsck', ['-f', '-y', image]).trim();
  } catch (error) {
    const { status, stdout } = error as { status?: number; stdout?: string };
    if (status === undefined || status > MENDED_MAX) throw error;
    return (stdout ?? '').trim();
  }
}
