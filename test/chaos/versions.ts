// The two versions of a rolling upgrade: this tree, and an older one as a folder that can be started.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { exportTree } from '../bench/trees.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** Folders whose changes make another version of the running processes. */
const PRODUCT = ['api', 'pipeline', 'sql', 'schemas', 'ops/platform', 'ops/exchange'];
/** Commits that are looked through for the default. */
const COMMITS_MAX = 200;

export interface Version {
  /** Commit or folder, for the report. */
  name: string;
  root: string;
  /** True if an API process that is stopped says so at /healthz before it stops listening. */
  saysItLeaves: boolean;
}

export const thisVersion = (): Version => versionOf('this tree', ROOT);

/**
 * Returns a version as a folder.
 *
 * @param from a commit, or a folder with a tree; undefined for the newest commit whose product differs from this tree
 * @param folder place for the tree of a commit
 * @throws UsageError if git knows no such commit
 */
export function openVersion(from: string | undefined, folder: string, progress: (line: string) => void): Version {
  if (from !== undefined && existsSync(path.join(from, 'api/main.ts'))) return versionOf(from, path.resolve(from));
  const { root, name } = exportTree(from ?? previousCommit(), folder, progress);
  return versionOf(name.slice(0, 10), root);
}

/**
 * Returns whether processes of the older version may start again after the newer one has run: both write the
 * same schemas of messages. ops/docs/operate/upgrade.md says what an operator does otherwise.
 */
export function mayGoBack(older: Version, newer: Version): boolean {
  const [before, after] = [messageSchemas(older.root), messageSchemas(newer.root)];
  return [...after].every(([name, text]) => before.get(name) === text);
}

function versionOf(name: string, root: string): Version {
  const settings = readFileSync(path.join(root, 'ops/deploy/env.example'), 'utf8');
  return { name, root, saysItLeaves: settings.includes('SERVICE_DRAIN_DELAY_MS') };
}

function messageSchemas(root: string): Map<string, string> {
  const folder = path.join(root, 'schemas');
  return new Map(
    readdirSync(folder)
      .filter((name) => name.endsWith('.avsc'))
      .map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]),
  );
}

/** @throws Error if no commit in reach differs, as in a shallow clone */
function previousCommit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  const commits = git('log', '--format=%H', `--max-count=${COMMITS_MAX}`).split('\n').filter(Boolean);
  const differs = (commit: string): boolean => git('diff', '--name-only', commit, '--', ...PRODUCT) !== '';
  const commit = commits.find(differs);
  if (commit === undefined) throw new Error('no commit in reach differs from this tree; name a version with --from');
  return commit;
}
