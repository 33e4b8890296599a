// `npm test [-- filters and options of vitest]`. Without arguments it runs the static checks (ops/tools/check.ts) and then all
// unit, integration and e2e tests; with arguments it runs the tests whose path contains a filter. The last line of its
// output is `N passed, N failed`, followed by `, N skipped` where tests were skipped. The exit code is 0 only when at least
// one test ran and nothing failed; failed checks, files that cannot be loaded and errors outside of tests count as failed.
import { spawnSync } from 'node:child_process';
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

/** Runs the static checks, which print their own results, and returns 1 when one of them failed. */
function failedChecks(): number {
  const { status } = spawnSync(process.execPath, ['ops/tools/check.ts'], { stdio: ['ignore', 'inherit', 'inherit'] });
  return status === 0 ? 0 : 1;
}

process.chdir(path.resolve(import.meta.dirname, '..'));
const wholeRun = process.argv.length === 2;
if (wholeRun) process.stdout.write('Static checks: lint, types, format, imports, dead code\n');
const checksFailed = wholeRun ? failedChecks() : 0;
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
counts.failed += checksFailed;
if (checksFailed > 0) process.stdout.write('The static checks failed: their output stands above the tests.\n');
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`, () => {
  leave(counts.failed > 0 || counts.passed === 0 ? 1 : 0);
});
