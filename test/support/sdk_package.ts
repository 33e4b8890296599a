// The SDK as people install it: packed into a tarball and unpacked into a folder of its own, beside
// the packages of this repository.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { tempDir } from './temp.ts';

const run = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../..');
const SOURCE = path.join(ROOT, 'api/sdk');
const BUILD_MS_MAX = 120_000;

/** Builds the SDK and packs it. Returns the tarball, in a folder of its own. */
async function packedSdk(): Promise<string> {
  const work = tempDir('sdk');
  const build = path.join(work, 'build');
  mkdirSync(build);
  for (const name of ['src', 'package.json', 'README.md', 'LICENSE'])
    cpSync(path.join(SOURCE, name), path.join(build, name), { recursive: true });
  const options = JSON.parse(readFileSync(path.join(SOURCE, 'tsconfig.json'), 'utf8')) as { extends: string };
  writeFileSync(
    path.join(build, 'tsconfig.json'),
    JSON.stringify({ ...options, extends: path.join(ROOT, 'tsconfig.json') }),
  );
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(work, 'node_modules'));
  await run(process.execPath, [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', build], {
    timeout: BUILD_MS_MAX,
  });
  await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', work], { cwd: build });
  return path.join(work, readdirSync(work).find((name) => name.endsWith('.tgz')) ?? '');
}

/** Returns a folder in which applications can import the SDK. */
export async function installedSdk(): Promise<string> {
  const tarball = await packedSdk();
  const app = path.join(path.dirname(tarball), 'app');
  const packages = path.join(app, 'node_modules');
  const own = path.join(packages, '@millrace/sdk');
  mkdirSync(own, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', own, '--strip-components=1']);
  for (const name of readdirSync(path.join(ROOT, 'node_modules')))
    if (name !== '@millrace' && !name.startsWith('.'))
      symlinkSync(path.join(ROOT, 'node_modules', name), path.join(packages, name));
  writeFileSync(path.join(app, 'package.json'), '{"name":"app","type":"module"}');
  return app;
}

/** Installs the tarball as npm does, without its peers, and returns the command `millrace`. */
export async function installedCli(): Promise<string> {
  const tarball = await packedSdk();
  const app = path.join(path.dirname(tarball), 'cli');
  mkdirSync(app);
  writeFileSync(path.join(app, 'package.json'), '{"name":"cli","private":true}');
  const quiet = ['--offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  await run('npm', ['install', '--omit=peer', '--legacy-peer-deps', ...quiet, tarball], { cwd: app });
  return path.join(app, 'node_modules/.bin/millrace');
}

/** Returns the blocks of a language below a heading of a Markdown text. */
export function codeBlocks(markdown: string, heading: string, language: string): string[] {
  const from = markdown.indexOf(`## ${heading}\n`);
  if (from < 0) throw new Error(`there is no heading ${heading}`);
  const to = markdown.indexOf('\n## ', from + 1);
  const section = markdown.slice(from, to < 0 ? undefined : to);
  return section
    .split(`\`\`\`${language}\n`)
    .slice(1)
    .map((block) => block.slice(0, block.indexOf('\n```')));
}

/** Returns the ```js blocks below a heading of a Markdown text. */
export const jsBlocks = (markdown: string, heading: string): string[] => codeBlocks(markdown, heading, 'js');
