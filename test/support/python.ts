// Python of this machine, for tests with real Python packages: MILLRACE_PYTHON names the interpreter, for
// example that of a virtual environment. Nothing is downloaded.
import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';

const PYTHON = process.env['MILLRACE_PYTHON'] ?? 'python3';

/** Returns why something that needs these packages cannot run here; null if it can. */
export function missingInPython(packages: readonly string[]): string | null {
  try {
    const imports = packages.map((name) => `import importlib.util; assert importlib.util.find_spec('${name}')`);
    execFileSync(PYTHON, ['-c', imports.join('\n')], { stdio: 'ignore', timeout: 60_000 });
    return null;
  } catch {
    return `${PYTHON} has not all of ${packages.join(', ')}`;
  }
}

/** Runs an application of test/support/python, and returns the line of JSON that it prints last. */
export async function runPython(name: string, env: Record<string, string>): Promise<Record<string, unknown>> {
  const file = new URL(`python/${name}.py`, import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(PYTHON, [file], {
    env: { PATH: process.env['PATH'], ...env },
    timeout: 120_000,
  });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, unknown>;
}
