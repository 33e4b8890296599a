// Finds a Chromium for the browser tests, or downloads Debian's chromium-headless-shell with the
// libraries that this machine lacks into the project's own folder, without root and without
// changing the system.
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { downloadsIn, hasApt } from '../../../ops/launch/debian.ts';
import { TOOLS_DIR } from '../../../ops/launch/nats/install.ts';

const run = promisify(execFile);

/** A browser that answered --version on this machine. */
export interface Chromium {
  executable: string;
  /** Variables that it needs in addition to those of this process. */
  env: Record<string, string>;
}

/** A font is part of the download: a machine without any draws no text. */
const PACKAGES = ['chromium-headless-shell', 'fonts-dejavu-core'];
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
const MAC = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';
const VERSION_MS_MAX = 20_000;
const UPDATE_MS_MAX = 180_000;
const DOWNLOAD_MS_MAX = 600_000;
const FONTS_CONF = 'etc/fonts/fonts.conf';

/**
 * Returns a usable Chromium: on PATH, downloaded earlier, or downloaded now.
 * @param progress called with one line when a download begins and when it ends
 * @throws Error with one line that says how to get one
 */
export async function findChromium(progress: (line: string) => void, toolsDir = TOOLS_DIR): Promise<Chromium> {
  const folders = [...(process.env['PATH'] ?? '').split(path.delimiter), '/usr/bin'];
  const candidates = [
    ...folders.flatMap((folder) => NAMES.map((name) => ({ executable: path.join(folder, name), env: {} }))),
    { executable: MAC, env: {} },
    inFolder(path.join(toolsDir, 'chromium')),
  ];
  for (const candidate of candidates) if ((await versionOf(candidate)) !== null) return candidate;
  if (!(await hasApt())) throw missing('it is not on PATH');
  progress('Chromium for the browser tests: downloading it into .tools/ (about 70 MB) …');
  const found = await download(toolsDir);
  const version = await versionOf(found);
  if (version === null) throw missing('the downloaded one does not start');
  progress(`Chromium: ${version}`);
  return found;
}

function missing(why: string): Error {
  return new Error(
    `The browser tests need Chromium, and ${why}: put chromium or chromium-headless-shell on PATH (the package of your system)`,
  );
}

/** Returns what --version prints; null if the browser is absent or does not start. */
async function versionOf({ executable, env }: Chromium): Promise<string | null> {
  if (!existsSync(executable)) return null;
  try {
    const { stdout } = await run(executable, ['--version'], {
      timeout: VERSION_MS_MAX,
      env: { ...process.env, ...env },
    });
    return stdout.trim();
  } catch {
    return null;
  }
}

/** Returns the browser of a folder into which its packages were unpacked. */
function inFolder(root: string): Chromium {
  const fonts = existsSync(`/${FONTS_CONF}`) ? {} : { FONTCONFIG_SYSROOT: root };
  return {
    executable: path.join(root, 'usr/lib/chromium/chromium-headless-shell'),
    env: { LD_LIBRARY_PATH: libraryFolders(root).join(path.delimiter), ...fonts },
  };
}

/** Returns every folder below usr/lib and lib that contains a library: some packages keep theirs in a folder of their own. */
function libraryFolders(root: string): string[] {
  const found = new Set<string>();
  for (const base of ['usr/lib', 'lib'].map((name) => path.join(root, name))) {
    if (!existsSync(base)) continue;
    for (const entry of readdirSync(base, { recursive: true, withFileTypes: true }))
      if (/\.so(?:\.|$)/.test(entry.name)) found.add(entry.parentPath);
  }
  return [...found].sort();
}

async function download(toolsDir: string): Promise<Chromium> {
  await mkdir(toolsDir, { recursive: true });
  const work = await mkdtemp(path.join(toolsDir, 'chromium-'));
  const root = path.join(toolsDir, 'chromium');
  try {
    const options = await downloadsIn(work);
    const apt = (timeout: number, ...args: string[]): Promise<unknown> =>
      run('apt-get', [...options, ...args], { cwd: work, timeout });
    await apt(UPDATE_MS_MAX, 'update');
    await apt(DOWNLOAD_MS_MAX, '-y', '--download-only', '--no-install-recommends', 'install', ...PACKAGES);
    const archives = path.join(work, 'cache/archives');
    const out = path.join(work, 'out');
    for (const deb of readdirSync(archives).filter((name) => name.endsWith('.deb')))
      await run('dpkg-deb', ['-x', path.join(archives, deb), out]);
    // The folder gets its name when it is whole: an interrupted download leaves none that looks whole.
    await rm(root, { recursive: true, force: true });
    await rename(out, root);
    return inFolder(root);
  } catch (error) {
    throw missing(
      `its download failed (${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)})`,
    );
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
