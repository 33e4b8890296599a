// Before the first test that needs them: nats-server is found or fetched, and one ClickHouse engine starts for the whole run.
// Tests get both through inject(); the engine and its folder are gone afterwards, also when a test failed.
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { startClickHouse } from '../../ops/launch/clickhouse/server.ts';
import { findNatsServer } from '../../ops/launch/nats/install.ts';
import { memoryDir, removeDir, removeLeft } from './temp.ts';
import { makeTemplate } from './template.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    natsBinary: string;
    /** Folder of this run, for what its tests start; it goes with all that is in it when the run ends. */
    folder: string;
    /** Users of the shared engine: app may use `millrace` and every test_*; analyst has its grants on views of `millrace`. */
    clickhouse: {
      url: string;
      analystUrl: string;
      /** Statements that make the tables and views in a database whose name takes the place of DATABASE_PLACE. */
      template: string[];
    };
  }
}

const MEMORY_MAX_BYTES = 1_500_000_000;

/** Vitest's global set-up: starts what is shared, gives back how to end it. */
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
