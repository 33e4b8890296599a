// `npm test [-- filters and options of vitest]`. Without arguments it runs all unit, integration and e2e tests and, beside
// them, the static checks (ops/tools/check.ts); with arguments it runs the tests whose path contains a filter. The last line
// of its output is `N passed, N failed`, followed by `, N skipped` where tests were skipped. The exit code is 0 only when at
// least one test ran and nothing failed; failed checks, files that cannot be loaded and errors outside of tests count as
// failed.
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import path from 'node:path';
import { type Vitest, parseCLI, startVitest } from 'vitest/node';
import { leave } from '../ops/platform/leave.ts';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

function count(vitest: Vitest): Counts {
  const counts: Counts = { passed: 0, failed: vitest.state.getUnhandledErrors().length, skipped: 0 };
  for (const module of vitest.state.getTestModules()) {
    let failedHere = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') counts.passed += 1;
      else if (state === 'skipped') counts.skipped += 1;
      // A test that never ended has not passed.
      else failedHere += 1;
    }
    // A hook or an import that fails leaves tests skipped, or none at all.
    counts.failed += failedHere === 0 && module.state() === 'failed' ? 1 : failedHere;
  }
  return counts;
}

interface CheckResult {
  passed: boolean;
  /** One line a check, and the whole output of those that failed. */
  output: string;
}

/** The checks have a deadline of minutes and the tests have deadlines of seconds: the tests go first. */
const CHECKS_NICE = 10;

/** Runs the static checks at a low priority and prints their results when the last of them has ended. */
async function runChecks(): Promise<CheckResult> {
  const child = spawn('nice', ['-n', String(CHECKS_NICE), process.execPath, 'ops/tools/check.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // A process group of its own, so that the checks end with this process.
    detached: true,
  });
  process.once('exit', () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid);
  });
  const code = new Promise<number | string | null>((resolve) => {
    child.once('error', (error) => {
      resolve(error.message);
    });
    child.once('close', resolve);
  });
  const [status, printed] = await Promise.all([code, text(child.stdout)]);
  const output = typeof status === 'string' ? `${status}\n` : printed;
  process.stdout.write(`Static checks:\n${output}`);
  return { passed: status === 0, output };
}

process.chdir(path.resolve(import.meta.dirname, '..'));
const wholeRun = process.argv.length === 2;
const checks = wholeRun ? runChecks() : null;
let counts: Counts = { passed: 0, failed: 1, skipped: 0 };
try {
  const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2)]);
  const vitest = await startVitest(filter, { ...options, run: true, watch: false });
  await vitest.close();
  counts = count(vitest);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
}
if (counts.passed + counts.failed === 0) process.stderr.write('No test was run.\n');
const checked = await checks;
if (checked?.passed === false) {
  counts.failed += 1;
  process.stdout.write(`The static checks failed:\n${checked.output}`);
}
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`, () => {
  leave(counts.failed > 0 || counts.passed === 0 ? 1 : 0);
});
