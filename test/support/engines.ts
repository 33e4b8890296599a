// Global set-up of the test run: finds or downloads nats-server and starts one ClickHouse engine
// for the whole run. Tests get both through inject(). The engine and its folder are removed
// afterwards, also when a test failed.
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { startClickHouse } from '../../ops/launch/clickhouse/server.ts';
import { findNatsServer } from '../../ops/launch/nats/install.ts';
import { memoryDir, removeDir, removeLeft } from './temp.ts';
import { makeTemplate } from './template.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    natsBinary: string;
    /**
     * Folder of this run for everything that its tests start. Removed with its contents when the
     * run ends.
     */
    folder: string;
    /**
     * Users of the shared engine: app may use `millrace` and every test_* database; analyst has its
     * grants on views of `millrace`.
     */
    clickhouse: {
      url: string;
      analystUrl: string;
      /**
       * Statements that create the tables and views in a database. DATABASE_PLACE in them is
       * replaced with its name.
       */
      template: string[];
    };
  }
}

const MEMORY_MAX_BYTES = 1_500_000_000;

/** Vitest's global set-up: starts the shared engines and returns the function that stops them. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  project.provide('natsBinary', await findNatsServer(console.log));
  removeLeft();
  const folder = memoryDir('tests');
  project.provide('folder', folder);
  const engine = await startClickHouse({
    dataDir: path.join(folder, 'clickhouse'),
    httpPort: 0,
    appPassword: 'test-app-password',
    analystPassword: 'test-analyst-password',
    database: 'millrace',
    moreDatabases: 'test_*',
    logFile: path.join(folder, 'logs', 'clickhouse.log'),
    memoryMaxBytes: MEMORY_MAX_BYTES,
  });
  project.provide('clickhouse', {
    url: engine.url,
    analystUrl: engine.analystUrl,
    template: await makeTemplate(engine.url),
  });
  return async () => {
    await engine.stop();
    removeDir(folder);
  };
}
