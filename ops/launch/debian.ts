// Options of apt-get for downloading packages without root and without changing the system: every
// file that apt-get writes is in a folder of the caller. apt-get checks the signature of the suite
// and the checksum of each package.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Returns true on a Linux with apt-get and dpkg-deb. */
export async function hasApt(): Promise<boolean> {
  return process.platform === 'linux' && (await exists('apt-get')) && (await exists('dpkg-deb'));
}

const exists = (command: string): Promise<boolean> =>
  run(command, ['--version']).then(
    () => true,
    () => false,
  );

/** Returns the Debian mirror that this machine's apt uses; null on other systems. */
export async function debianMirror(): Promise<string | null> {
  if (!existsSync(KEYRING)) return null;
  try {
    const { stdout } = await run('apt-get', ['indextargets', '--format', '$(REPO_URI) $(ORIGIN) $(SUITE)']);
    const own = stdout.split('\n').find((line) => /\sDebian\s/.test(line) && !/security/i.test(line));
    return own?.split(' ')[0] ?? null;
  } catch {
    return null;
  }
}

/** Returns options for the machine's own package sources. */
export const ownSourcesOptions = (): string[] => ['-qq', '-o', `APT::Sandbox::User=${userInfo().username}`];

/** Returns options for a root of apt in a folder, with one suite of a mirror and no installed package. */
export async function privateRoot(work: string, source: { mirror: string; suite: string }): Promise<string[]> {
  for (const folder of ['lists/partial', 'cache/archives/partial', 'etc/preferences.d', 'etc/apt.conf.d'])
    await mkdir(path.join(work, folder), { recursive: true });
  await writeFile(path.join(work, 'status'), '');
  await writeFile(
    path.join(work, 'etc/sources.list'),
    `deb [signed-by=${KEYRING}] ${source.mirror} ${source.suite} main\n`,
  );
  return [
    ...ownSourcesOptions(),
    ...settings({
      'Dir::State': work,
      'Dir::State::lists': path.join(work, 'lists'),
      'Dir::State::status': path.join(work, 'status'),
      'Dir::Cache': path.join(work, 'cache'),
      'Dir::Etc': path.join(work, 'etc'),
      'Dir::Etc::sourcelist': path.join(work, 'etc/sources.list'),
      'Dir::Etc::sourceparts': '/dev/null',
      'Acquire::Languages': 'none',
      'Acquire::Retries': '3',
    }),
  ];
}

/**
 * Returns options for the machine's own sources and list of installed packages, with downloads in a
 * folder: apt-get then downloads a package and those of its dependencies that the machine lacks.
 */
export async function downloadsIn(work: string): Promise<string[]> {
  for (const folder of ['lists/partial', 'cache/archives/partial'])
    await mkdir(path.join(work, folder), { recursive: true });
  return [
    ...ownSourcesOptions(),
    ...settings({
      'Dir::State::lists': path.join(work, 'lists'),
      'Dir::Cache': path.join(work, 'cache'),
      // The lock of the system's package database belongs to root, and nothing is installed.
      'Debug::NoLocking': 'true',
      'Acquire::Languages': 'none',
      'Acquire::Retries': '3',
    }),
  ];
}

const settings = (values: Record<string, string>): string[] =>
  Object.entries(values).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
