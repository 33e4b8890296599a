// Static checks: types, lint, format, dead code and the direction of imports. `npm run check` runs
// all of them, `npm run check -- types lint` runs those named. Prints one line for each check and
// the whole output of failed ones; the exit code is 1 if any fails. `npm test` runs the same checks
// beside the tests.
import { spawn } from 'node:child_process';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const script = (file: string, ...args: string[]): string[] => [path.join(root, 'node_modules', file), ...args];

/** Node arguments of each check, slowest first, for machines with two cores. */
const CHECKS: Record<string, string[]> = {
  // The linter holds the types of every file: more than the heap that Node takes by default.
  lint: ['--max-old-space-size=6144', ...script('eslint/bin/eslint.js', '.')],
  types: script('typescript/bin/tsc', '-p', '.'),
  'portal types': script('typescript/bin/tsc', '-p', 'api/portal/web'),
  'browser test types': script('typescript/bin/tsc', '-p', 'test/browser'),
  format: script('prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'),
  imports: script(
    'dependency-cruiser/bin/dependency-cruiser.mjs',
    '--config',
    '.dependency-cruiser.cjs',
    'api',
    'ops',
    'pipeline',
    'schemas',
    'sql',
    'test',
  ),
  'dead code': script('knip/bin/knip.js', '--no-progress'),
};
const AT_ONCE = 2;

/** Runs one check, prints its result, and returns true when it passed. */
async function run(name: string, args: string[]): Promise<boolean> {
  const started = performance.now();
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const passed = await new Promise<boolean>((resolve) => {
    child.on('error', (error) => {
      output += error.message;
      resolve(false);
    });
    child.on('close', (code) => {
      resolve(code === 0);
    });
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`${passed ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)\n${passed ? '' : `${output}\n`}`);
  return passed;
}

const named = process.argv.slice(2);
const unknown = named.filter((name) => !Object.hasOwn(CHECKS, name));
if (unknown.length > 0) {
  process.stderr.write(
    `There is no check named ${unknown.join(', ')}; the checks are: ${Object.keys(CHECKS).join(', ')}.\n`,
  );
  process.exit(2);
}
const waiting = Object.entries(CHECKS).filter(([name]) => named.length === 0 || named.includes(name));
let failed = 0;
async function work(): Promise<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    if (!(await run(...next))) failed += 1;
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
process.exit(failed === 0 ? 0 : 1);
