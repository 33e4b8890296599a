// Four test suites: unit tests need no server, integration and e2e tests run against a real nats-server and one real ClickHouse
// engine, and browser tests drive a headless Chromium against one whole service.
import { defineConfig } from 'vitest/config';

const engines = { globalSetup: ['test/support/engines.ts'], testTimeout: 300_000, hookTimeout: 300_000 };

export default defineConfig({
  test: {
    pool: 'forks',
    // One more than the two cores of the machines that run this: a test file waits for timers of the product during
    // half of its time (a lease that expires, a trace that becomes complete). A fourth adds load and no speed.
    maxWorkers: 3,
    passWithNoTests: false,
    setupFiles: ['test/support/properties.ts'],
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/unit/**/*.test.ts'], testTimeout: 60_000 } },
      { extends: true, test: { name: 'integration', include: ['test/integration/**/*.test.ts'], ...engines } },
      {
        extends: true,
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          globalSetup: ['test/browser/support/setup.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          expect: { poll: { timeout: 60_000 } },
        },
      },
      { extends: true, test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], ...engines } },
    ],
  },
});
