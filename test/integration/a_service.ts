// A complete service for one test: a database, a nats-server, APIs in the test's own process and
// one worker process. close() stops all of them.
import { createTestDatabase, type TestDatabase } from '../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../support/nats.ts';
import { startWorker, type TestWorker } from '../support/pipeline.ts';
import { startTestApi, type TestApi, type TestApiOptions } from './api/an_api.ts';

export interface TestServiceOptions {
  /** Settings of each API. */
  api?: Omit<TestApiOptions, 'natsUrl' | 'clickhouseUrl'>;
  /** Environment variables of the worker. */
  worker?: Record<string, string>;
}

export class TestService {
  readonly database: TestDatabase;
  readonly nats: TestNats;
  readonly #options: TestServiceOptions;
  readonly #apis: TestApi[] = [];
  #worker: TestWorker | null = null;

  private constructor(database: TestDatabase, nats: TestNats, options: TestServiceOptions) {
    this.database = database;
    this.nats = nats;
    this.#options = options;
  }

  /** Starts a service that has no API. */
  static async start(options: TestServiceOptions = {}): Promise<TestService> {
    const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
    const service = new TestService(database, nats, options);
    await service.startWorker();
    return service;
  }

  /** The URLs at which another process reaches this service's stores. */
  get urls(): { natsUrl: string; clickhouseUrl: string } {
    return { natsUrl: this.nats.url, clickhouseUrl: this.database.url };
  }

  /** Starts another API. */
  async startApi(): Promise<TestApi> {
    const api = await startTestApi({ ...this.urls, ...this.#options.api });
    this.#apis.push(api);
    return api;
  }

  /** Starts a worker after the previous one was killed. Resolves once the worker is ready. */
  async startWorker(): Promise<void> {
    const { worker: more } = this.#options;
    this.#worker = startWorker({ ...this.urls, ...(more === undefined ? {} : { more }) });
    await this.#worker.ready;
  }

  /** Kills the worker with SIGKILL. */
  async killWorker(): Promise<void> {
    this.#worker?.kill('SIGKILL');
    await this.#worker?.exited;
  }

  async close(): Promise<void> {
    await this.killWorker();
    for (const api of this.#apis) await api.close();
    await this.nats.remove();
    await this.database.drop();
  }
}
