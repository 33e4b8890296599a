// `npm test [-- filters and options of vitest]`. Without arguments it runs all unit, integration and e2e tests and, beside
// them, the static checks (ops/tools/check.ts); with arguments it runs the tests whose path contains a filter. The last line
// of its output is `N passed, N failed`, followed by `, N skipped` where tests were skipped. The exit code is 0 only when at
// least one test ran and nothing failed; failed checks, files that cannot be loaded and errors outside of tests count as
// failed. A whole run in which few files failed runs these once more by themselves and names the tests that pass then: each
// is a defect of the product or of the test, but no reason to refuse a change that did not touch it.
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import path from 'node:path';
import { leave } from '../ops/platform/leave.ts';
import { type Results, runFailedAgain, runTests, sum } from './run_tests.ts';

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

/** Reports that vitest itself failed. */
function notRun(error: unknown): void {
  results.errors += 1;
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
}

process.chdir(path.resolve(import.meta.dirname, '..'));
const wholeRun = process.argv.length === 2;
const checks = wholeRun ? runChecks() : null;
const results: Results = { files: new Map(), errors: 0 };
try {
  Object.assign(results, await runTests(process.argv.slice(2)));
} catch (error) {
  notRun(error);
}
const checked = await checks;
if (wholeRun) await runFailedAgain(results).catch(notRun);
const counts = sum(results);
if (counts.passed + counts.failed === 0) process.stderr.write('No test was run.\n');
if (checked?.passed === false) {
  counts.failed += 1;
  process.stdout.write(`The static checks failed:\n${checked.output}`);
}
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`, () => {
  leave(counts.failed > 0 || counts.passed === 0 ? 1 : 0);
});
