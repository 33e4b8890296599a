// Everything that can be said about the code without running it: types, lint, format, dead code, direction of imports.
// Prints one line a check and the output of those that fail; exit code 1 when any did.
import { spawnSync } from 'node:child_process';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const script = (file: string, ...args: string[]): string[] => [path.join(root, 'node_modules', file), ...args];

const CHECKS: Record<string, string[]> = {
  types: script('typescript/bin/tsc', '-p', '.'),
  lint: script('eslint/bin/eslint.js', '.'),
  format: script('prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'),
  'dead code': script('knip/bin/knip.js', '--no-progress'),
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
};

const only = process.argv.slice(2);
let failed = 0;
for (const [name, args] of Object.entries(CHECKS)) {
  if (only.length > 0 && !only.includes(name)) continue;
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  process.stdout.write(`${status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)\n`);
  if (status === 0) continue;
  failed += 1;
  process.stdout.write(`${stdout}${stderr}\n`);
}
process.exit(failed === 0 ? 0 : 1);
