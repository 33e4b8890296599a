// Bundles the pages of the portal (api/portal/web) for browsers. Takes the sources; returns a folder
// with manifest.json (Vite's: source file → chunk, its imports and styles) and assets/* under hashed
// names, each text beside its .br and .gz form. Guarantees: a folder is whole or absent, because it
// is made under another name and renamed; its name is the hash of everything that it is made from,
// so an existing folder is up to date; where a build fails, `<folder>.failed` holds the reason.
// Bounded by what the sources need; the two newest builds are kept, and those of the last day.
import { createHash, type Hash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { chunkGroups, nameScreens } from './chunks.ts';
import { classNames } from './class_names.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
/** The package by which the Markdown parser decodes `&amp;`. Its form for browsers is refused by the page's policy. */
const ENTITIES = 'decode-named-character-reference';
const WEB = path.join(ROOT, 'api/portal/web');
const BUILDS = path.join(ROOT, 'node_modules/.cache/millrace/portal');
/** Sources outside of web/ that a build depends on. The lock file holds the versions of all packages. */
const OTHER_SOURCES = [
  'api/portal/pages.ts',
  'pipeline/domain/traces/span_flags.ts',
  'ops/launch/portal/build.ts',
  'ops/launch/portal/chunks.ts',
  'ops/launch/portal/class_names.ts',
  'package-lock.json',
];
const BUILDS_KEPT = 2;
/** A service may still serve a build of this age: the tests and the service of a working copy share the folder. */
const IN_USE_MS = 24 * 3_600_000;
/** A temporary folder of this age belongs to a build that was killed. */
const STALE_MS = 600_000;
const COMPRESSED = new Set(['.js', '.css', '.svg', '.json']);
const FAILED = '.failed';

/**
 * Returns the folder in which the build of the present sources is, or will be. Reads the sources only.
 * @param builds folder of the builds
 */
export function portalBuildFolder(builds = BUILDS): string {
  const sum = createHash('sha256');
  for (const file of readdirSync(WEB, { recursive: true, encoding: 'utf8' }).toSorted()) {
    const full = path.join(WEB, file);
    if (statSync(full).isFile()) addFile(sum, file, full);
  }
  for (const file of OTHER_SOURCES) {
    const full = path.join(ROOT, file);
    if (existsSync(full)) addFile(sum, file, full);
  }
  return path.join(builds, sum.digest('hex'));
}

function addFile(sum: Hash, name: string, full: string): void {
  const content = readFileSync(full);
  sum.update(`${name}\n${content.byteLength}\n`).update(content);
}

/**
 * Builds the pages unless the folder exists, and returns it.
 * @param builds folder of the builds
 * @throws Error with the reason when the sources cannot be bundled
 */
export async function buildPortal(builds = BUILDS): Promise<string> {
  const folder = portalBuildFolder(builds);
  if (existsSync(folder)) return folder;
  mkdirSync(builds, { recursive: true });
  const making = `${folder}.${process.pid}.making`;
  try {
    await bundle(making);
    await compressAll(path.join(making, 'assets'));
    // Another process may have finished the same build first.
    if (existsSync(folder)) rmSync(making, { recursive: true, force: true });
    else renameSync(making, folder);
    rmSync(folder + FAILED, { force: true });
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    if (existsSync(folder)) return folder;
    const reason = error instanceof Error ? error.message : String(error);
    writeFileSync(folder + FAILED, reason);
    throw new Error(`The portal could not be built: ${reason}`, { cause: error });
  }
  removeOld(builds, folder);
  return folder;
}

/**
 * Puts the order of the cascade layers before every style sheet. In one file for all pages any of them may
 * come first, and the first mention of a layer decides its place.
 */
const LAYERS = {
  name: 'layers',
  enforce: 'pre' as const,
  transform: (code: string, id: string): string | null =>
    id.endsWith('.css') ? `@layer reset, tokens, base, parts, screens;\n${code}` : null,
};

/** Runs Vite; its import takes longer than a check for an existing build, so it is not at the top. */
async function bundle(outDir: string): Promise<void> {
  const { build } = await import('vite');
  const built = await build({
    root: WEB,
    // Addresses relative to the importing file, so that the server alone decides where assets are.
    base: './',
    configFile: false,
    envDir: false,
    publicDir: false,
    mode: 'production',
    logLevel: 'silent',
    // NODE_ENV of the environment must not decide which form of React is bundled.
    define: { 'process.env.NODE_ENV': '"production"' },
    resolve: {
      conditions: ['module', 'browser', 'production'],
      alias: { [ENTITIES]: path.join(WEB, 'trace/text/entities.ts') },
    },
    oxc: { jsx: { runtime: 'automatic', development: false } },
    plugins: [LAYERS],
    css: { modules: { generateScopedName: classNames(WEB) } },
    worker: { format: 'es' },
    build: {
      outDir,
      assetsDir: 'assets',
      manifest: 'manifest.json',
      target: ['chrome120', 'firefox121', 'safari17.2'],
      // A data: address is refused by the Content-Security-Policy of the page.
      assetsInlineLimit: 0,
      // The polyfill would be an inline script.
      modulePreload: { polyfill: false },
      // One style sheet for all pages compresses to two thirds of one for each chunk, whose rules are alike. The
      // browser fetches it once, and no page waits for styles of its own.
      cssCodeSplit: false,
      reportCompressedSize: false,
      emptyOutDir: true,
      rolldownOptions: {
        input: [path.join(WEB, 'early.ts'), path.join(WEB, 'main.tsx')],
        output: {
          codeSplitting: { groups: chunkGroups() },
          // Short, because the page names up to thirty of them; the manifest tells which sources they hold.
          entryFileNames: 'assets/[hash].js',
          chunkFileNames: 'assets/[hash].js',
          assetFileNames: 'assets/[name]-[hash][extname]',
        },
      },
    },
  });
  if (!('output' in built)) throw new Error('the bundler gave no files');
  nameScreens(outDir, WEB, built.output);
}

const brotli = promisify(brotliCompress);
const zip = promisify(gzip);

async function compressAll(folder: string): Promise<void> {
  const files = (await readdir(folder)).filter((file) => COMPRESSED.has(path.extname(file)));
  await Promise.all(
    files.map(async (name) => {
      const file = path.join(folder, name);
      const content = await readFile(file);
      const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: content.byteLength };
      const [br, gz] = await Promise.all([brotli(content, { params }), zip(content, { level: 9 })]);
      await Promise.all([writeFile(`${file}.br`, br), writeFile(`${file}.gz`, gz)]);
    }),
  );
}

/** Removes old builds except for the newest ones, and what killed builds left. */
function removeOld(builds: string, newest: string): void {
  const entries = readdirSync(builds)
    .map((name) => path.join(builds, name))
    .filter((file) => file !== newest && existsSync(file))
    .map((file) => ({ file, changed: statSync(file).mtimeMs }))
    .toSorted((a, b) => b.changed - a.changed);
  const olderThan =
    (ms: number) =>
    ({ changed }: { changed: number }): boolean =>
      Date.now() - changed > ms;
  const whole = entries.filter(({ file }) => path.extname(file) === '').slice(BUILDS_KEPT - 1);
  const rest = entries.filter(({ file }) => path.extname(file) !== '');
  for (const { file } of [...whole.filter(olderThan(IN_USE_MS)), ...rest.filter(olderThan(STALE_MS))])
    rmSync(file, { recursive: true, force: true });
}
