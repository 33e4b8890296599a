// Spreads parts over the disk on ext4 without a journal, which does not reuse the inode of a
// deleted file for a while (fs/ext4/ialloc.c, recently_deleted; microVMs and sandboxes commonly
// have such a disk). On such a file system every file creation looks at each inode of its block
// group that was freed in the last minutes. A landing creates some seventy small files and merges
// delete as many, all in one place, so landings took twice the time after some minutes. With the
// attribute T (chattr(1)), the folders of parts are spread over the disk's groups. With a journal
// there is no such search, and parts that lie together cost it less, so nothing is done.
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readlinkSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * statfs(2), EXT4_SUPER_MAGIC. ext2 and ext3 have the same number, but a folder in /proc/fs/ext4
 * only when the ext4 driver serves them.
 */
const EXT4_MAGIC = 0xef53;
const CHATTR_MS_MAX = 10_000;

/** Returns true when a folder lies on ext4 without a journal. */
export function isUnjournaledExt4(folder: string): boolean {
  if (process.platform !== 'linux' || statfsSync(folder).type !== EXT4_MAGIC) return false;
  const { dev } = statSync(folder);
  // makedev(3): the low 12 bits of the major number stand above the low 8 bits of the minor number;
  // the other bits of both stand further up.
  const major = (Math.floor(dev / 2 ** 32) & 0xfffff000) | (Math.floor(dev / 256) & 0xfff);
  const minor = (Math.floor(dev / 4096) & 0xffffff00) | (dev & 0xff);
  try {
    const device = path.basename(readlinkSync(`/sys/dev/block/${major}:${minor}`));
    // Without the journal driver there is no journal.
    const journals = existsSync('/proc/fs/jbd2') ? readdirSync('/proc/fs/jbd2') : [];
    return existsSync(`/proc/fs/ext4/${device}`) && !journals.some((journal) => journal.startsWith(`${device}-`));
  } catch {
    return false;
  }
}

/**
 * Spreads the parts that tables create from now on. This only improves speed: where it is not
 * possible, nothing changes.
 * @param dir folder of the engine, whose tables exist
 * @returns true when it was done
 */
export async function spreadParts(dir: string): Promise<boolean> {
  const inside = (folder: string): string[] => readdirSync(folder).map((name) => path.join(folder, name));
  let tables: string[] = [];
  try {
    const store = path.join(dir, 'store');
    if (isUnjournaledExt4(store)) tables = inside(store).flatMap(inside);
  } catch {
    // The folder does not exist, or the engine deleted a table's folder meanwhile; the service
    // starts anyway.
  }
  if (tables.length === 0) return false;
  return new Promise((resolve) => {
    execFile('chattr', ['+T', ...tables], { timeout: CHATTR_MS_MAX }, (error) => {
      resolve(error === null);
    });
  });
}
