// Runs tests with vitest, counts their results by file, and runs the few files that failed once more by themselves.
import path from 'node:path';
import { parseCLI, startVitest, type TestModule } from 'vitest/node';

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Results of one run of vitest. */
export interface Results {
  /** By the path of a test file. */
  files: Map<string, FileResult>;
  /** Number of errors outside of tests. */
  errors: number;
}

interface FileResult extends Counts {
  /** Full names of the tests that failed; the file's own path where a hook or an import did. */
  failures: string[];
}

/** More files than these are not run again: so many do not fail by chance. */
const AGAIN_FILES_MAX = 3;

/** @param argv filters and options of vitest. @throws Error if an option is unknown */
export async function runTests(argv: readonly string[]): Promise<Results> {
  const { filter, options } = parseCLI(['vitest', 'run', ...argv]);
  const vitest = await startVitest(filter, { ...options, run: true, watch: false });
  await vitest.close();
  const files = vitest.state
    .getTestModules()
    .map((module): [string, FileResult] => [module.moduleId, resultOf(module)]);
  return { files: new Map(files), errors: vitest.state.getUnhandledErrors().length };
}

function resultOf(module: TestModule): FileResult {
  const result: FileResult = { passed: 0, failed: 0, skipped: 0, failures: [] };
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    if (state === 'passed') result.passed += 1;
    else if (state === 'skipped') result.skipped += 1;
    // A test that never ended has not passed.
    else result.failures.push(test.fullName);
  }
  // A hook or an import that fails leaves tests skipped, or none at all.
  if (result.failures.length === 0 && module.state() === 'failed') result.failures.push(module.moduleId);
  return { ...result, failed: result.failures.length };
}

/** Runs the files that failed once more, if they are few, and replaces their results, unless it skips more tests. */
export async function runFailedAgain(results: Results): Promise<void> {
  const failed = [...results.files].filter(([, { failures }]) => failures.length > 0);
  if (results.errors > 0 || failed.length === 0 || failed.length > AGAIN_FILES_MAX) return;
  process.stdout.write(`Running again by themselves: ${failed.map(([file]) => path.relative('.', file)).join(', ')}\n`);
  const again = await runTests(failed.map(([file]) => file));
  results.errors += again.errors;
  for (const [file, before] of failed) {
    const now = again.files.get(file);
    // A test that is skipped when run again has not passed.
    if (now === undefined || now.skipped > before.skipped) continue;
    results.files.set(file, now);
    const passed = before.failures.filter((test) => !now.failures.includes(test));
    for (const test of passed)
      process.stdout.write(`Failed, and passed when run again: ${path.relative('.', file)}: ${test}\n`);
  }
}

/** Adds up all files; an error outside of tests counts as a failed test. */
export function sum({ files, errors }: Results): Counts {
  const counts: Counts = { passed: 0, failed: errors, skipped: 0 };
  for (const { passed, failed, skipped } of files.values()) {
    counts.passed += passed;
    counts.failed += failed;
    counts.skipped += skipped;
  }
  return counts;
}
