// A commit as a tree of its own that can be started: exported by `git archive`, which leaves
// nothing behind in the repository, with this tree's dependencies when both lock files are equal,
// else with its own.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { UsageError } from './options.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** Maximum bytes of a whole tree as tar. */
const ARCHIVE_BYTES_MAX = 512 * 1024 ** 2;

export interface Tree {
  root: string;
  /** The commit, or the name that was given. */
  name: string;
}

export const newTreesDir = (): string => mkdtempSync(path.join(tmpdir(), 'millrace-trees-'));

const git = (args: readonly string[]): Buffer =>
  execFileSync('git', args, { cwd: ROOT, maxBuffer: ARCHIVE_BYTES_MAX, stdio: ['ignore', 'pipe', 'pipe'] });

/**
 * Exports a commit into a folder; `.` is this tree as it is, which is not copied.
 * @throws UsageError when git knows no such commit; Error when npm ci fails
 */
export function exportTree(commit: string, folder: string, progress: (line: string) => void): Tree {
  if (commit === '.') return { root: ROOT, name: 'this tree as it lies here' };
  let name: string;
  try {
    name = git(['rev-parse', '--verify', `${commit}^{commit}`])
      .toString()
      .trim();
  } catch {
    throw new UsageError(`git knows no commit ${commit}`);
  }
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['x', '-C', folder], { input: git(['archive', name]) });
  installInto(folder, progress);
  return { root: folder, name };
}

const lockOf = (root: string): string => readFileSync(path.join(root, 'package-lock.json'), 'utf8');

function installInto(folder: string, progress: (line: string) => void): void {
  const tools = path.join(ROOT, '.tools');
  if (existsSync(tools)) symlinkSync(tools, path.join(folder, '.tools'));
  if (lockOf(folder) === lockOf(ROOT)) {
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
    return;
  }
  progress(`npm ci in ${folder} …`);
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error(`npm ci in ${folder} ended with code ${String(status)}`);
}
