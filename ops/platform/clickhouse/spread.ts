// Keeps parts apart on a file system that does not give a deleted file's inode away for a while: ext4 without a journal.
// There (fs/ext4/ialloc.c, recently_deleted; microVMs and sandboxes commonly have such a disk) every file that is made looks at each inode of
// its block group that was freed in the last minutes. A landing makes some seventy small files and merges delete as many, all in one place:
// landings took twice the time after some minutes. With the attribute T (chattr(1)) the folders of parts are spread over the disk's groups.
// With a journal there is no such search, and parts that lie together cost it less: nothing is done.
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readlinkSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';

/** statfs(2), EXT4_SUPER_MAGIC; ext2 and ext3 have the same, and no folder in /proc/fs/ext4 unless the driver of ext4 serves them. */
const EXT4_MAGIC = 0xef53;
const CHATTR_MS_MAX = 10_000;

/** Whether a folder lies on ext4 without a journal. */
export function isUnjournaledExt4(folder: string): boolean {
  if (process.platform !== 'linux' || statfsSync(folder).type !== EXT4_MAGIC) return false;
  const { dev } = statSync(folder);
  // makedev(3): 12 bits of the major number above 8 of the minor one, the rest of both further up.
  const major = (Math.floor(dev / 2 ** 32) & 0xfffff000) | (Math.floor(dev / 256) & 0xfff);
  const minor = (Math.floor(dev / 4096) & 0xffffff00) | (dev & 0xff);
  try {
    const device = path.basename(readlinkSync(`/sys/dev/block/${String(major)}:${String(minor)}`));
    // Without the driver of journals there is no journal.
    const journals = existsSync('/proc/fs/jbd2') ? readdirSync('/proc/fs/jbd2') : [];
    return existsSync(`/proc/fs/ext4/${device}`) && !journals.some((journal) => journal.startsWith(`${device}-`));
  } catch {
    return false;
  }
}

/**
 * Spreads the parts that tables will make from now on. For speed only: where it cannot be done, nothing is.
 * @param dir folder of the engine, whose tables exist
 * @returns whether it was done
 */
export async function spreadParts(dir: string): Promise<boolean> {
  const inside = (folder: string): string[] => readdirSync(folder).map((name) => path.join(folder, name));
  let tables: string[] = [];
  try {
    const store = path.join(dir, 'store');
    if (isUnjournaledExt4(store)) tables = inside(store).flatMap(inside);
  } catch {
    // There is no such folder, or the engine took a table's away meanwhile: no reason not to start.
  }
  if (tables.length === 0) return false;
  return new Promise((resolve) => {
    execFile('chattr', ['+T', ...tables], { timeout: CHATTR_MS_MAX }, (error) => {
      resolve(error === null);
    });
  });
}
