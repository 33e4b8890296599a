// Finds a nats-server of a version that the service is tested with (2.10 or later of major 2), or
// downloads one into the project's own folder, without root and without changing the system.
// Returns the path of a binary that ran and reported its version, or throws one clear line on how
// to get one.
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { existsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { debianMirror, hasApt, ownSourcesOptions, privateRoot } from '../debian.ts';

const run = promisify(execFile);

/**
 * Major version that the service is tested with, and the oldest minor version of it that keeps
 * every stream setting the service uses.
 */
const MAJOR = 2;
const MINOR_MIN = 10;
/** Output of nats-server -v. A binary with any other output has no known version. */
const VERSION_LINE = /^nats-server: v((\d+)\.(\d+)\.\d+(?:[A-Za-z.+~_-][\w.+~-]*)?)$/;
/**
 * Debian suites with a newer version than the machine's own, newest first; the later ones need an
 * older libc.
 */
const SUITES = ['sid', 'trixie'] as const;
const FETCH_MS_MAX = 120_000;

/** Folder of the project for downloaded tools. */
export const TOOLS_DIR = path.resolve(import.meta.dirname, '../../../.tools');

/**
 * Returns the path of a usable nats-server: downloaded earlier, on PATH, or downloaded now.
 * @param progress called with one line when a download begins and when it ends
 * @throws Error with one line that says how to get one
 */
export async function findNatsServer(progress: (line: string) => void, toolsDir = TOOLS_DIR): Promise<string> {
  const fetched = path.join(toolsDir, 'nats-server');
  const onPath = [
    ...(process.env['PATH'] ?? '').split(path.delimiter),
    '/usr/sbin',
    '/usr/local/sbin',
    '/opt/homebrew/bin',
  ].map((folder) => path.join(folder, 'nats-server'));
  for (const candidate of [...onPath, fetched]) {
    if (isFile(candidate) && (await usable(candidate)) !== null) return candidate;
  }
  if (!(await hasApt())) throw missing('it is not on PATH');
  progress('nats-server: downloading it into .tools/ (about 6 MB) …');
  const mirror = await debianMirror();
  if (mirror !== null) {
    for (const suite of SUITES) {
      const version = await fetchFrom(fetched, { mirror, suite });
      if (version !== null) {
        progress(`nats-server: ${version} from Debian ${suite}`);
        return fetched;
      }
    }
  }
  const version = await fetchFrom(fetched, null);
  if (version === null) throw missing('it is not on PATH, and no package source of this machine gave one');
  progress(`nats-server: ${version} from this machine's package sources`);
  return fetched;
}

function missing(why: string): Error {
  const how =
    process.platform === 'darwin'
      ? 'brew install nats-server'
      : "put nats-server on PATH (your system's package, or https://nats.io/download)";
  return new Error(
    `nats-server ${MAJOR}.${MINOR_MIN} or a later ${MAJOR}.x is needed and ${why}: ${how}, or set SERVICE_NATS_URL to a running NATS`,
  );
}

const isFile = (file: string): boolean => existsSync(file) && statSync(file).isFile();

/**
 * Returns the version that the binary reports; null if it does not run here, or is a version that
 * the service is not tested with.
 */
async function usable(binary: string): Promise<string | null> {
  try {
    const { stdout } = await run(binary, ['-v'], { timeout: 5000 });
    const match = VERSION_LINE.exec(stdout.trim());
    if (match === null) return null;
    const [, version = '', major, minor] = match;
    return Number(major) === MAJOR && Number(minor) >= MINOR_MIN ? `v${version}` : null;
  } catch {
    return null;
  }
}

/**
 * Downloads the package through a private root of apt, which checks the suite's signature and the
 * package's checksum, and keeps its binary if it runs here. With a null source it uses the
 * machine's own package sources.
 * @returns the version, or null if this source provided no usable binary
 */
async function fetchFrom(target: string, source: { mirror: string; suite: string } | null): Promise<string | null> {
  const work = await mkdtemp(path.join(tmpdir(), 'millrace-nats-'));
  try {
    const options = source === null ? ownSourcesOptions() : await privateRoot(work, source);
    const apt = (...args: string[]): Promise<unknown> =>
      run('apt-get', [...options, ...args], { cwd: work, timeout: FETCH_MS_MAX });
    if (source !== null) await apt('update');
    await apt('download', 'nats-server');
    const deb = (await readdir(work)).find((name) => name.endsWith('.deb'));
    if (deb === undefined) return null;
    await run('dpkg-deb', ['-x', path.join(work, deb), path.join(work, 'out')]);
    const binary = path.join(work, 'out/usr/sbin/nats-server');
    const version = await usable(binary);
    if (version === null) return null;
    await mkdir(path.dirname(target), { recursive: true });
    // The binary is written beside its place and then renamed: another process may download at the
    // same time, and must never run a partial file.
    const beside = `${target}.${process.pid}`;
    await copyFile(binary, beside);
    await rename(beside, target);
    return version;
  } catch {
    return null;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
