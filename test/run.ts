// `npm test [-- filters and options of vitest]`: runs unit, integration and e2e tests, all or those whose path holds a filter.
// The last line of its output is `N passed, N failed`, with `, N skipped` where there are any. Exit code 0 only when at least
// one test ran and none failed; a file that cannot be loaded and an error outside of any test count as failed.
import path from 'node:path';
import { type Vitest, parseCLI, startVitest } from 'vitest/node';
import { leave } from '../ops/process/leave.ts';

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

process.chdir(path.resolve(import.meta.dirname, '..'));
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
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`, () => {
  leave(counts.failed > 0 || counts.passed === 0 ? 1 : 0);
});
