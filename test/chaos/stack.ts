// The service as separate processes that can be killed one by one: nats-server, ClickHouse, the API, two pipeline workers.
// Every process keeps its port and folder over restarts. Guarantees: stop() leaves nothing running and nothing on disk.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { startClickHouse } from '../../ops/clickhouse/server.ts';
import { findNatsServer } from '../../ops/nats/install.ts';
import { startNats } from '../../ops/nats/server.ts';
import { describeExit } from '../../ops/process/child.ts';
import type { Running } from '../../ops/process/kept.ts';
import { startNodeMain } from '../../ops/process/node_main.ts';
import { freePort } from '../../ops/process/ports.ts';
import { removeDir, tempDir } from '../support/temp.ts';

export const PROCESSES = ['api', 'worker-1', 'worker-2', 'nats', 'clickhouse'] as const;
export type ProcessName = (typeof PROCESSES)[number];

const ROOT = path.resolve(import.meta.dirname, '../..');
const DATABASE = 'millrace';
const READY_MS_MAX = 60_000;
const STOP_MS_MAX = 30_000;
const MEMORY_BYTES = 1_200_000_000;
/** Traces complete quickly, so that a run can see each of them complete. */
const TIMES = { SERVICE_TRACE_GRACE_MS: '500', SERVICE_TRACE_IDLE_MS: '4000' };

export interface StackAddress {
  url: string;
  org: string;
  key: string;
  natsUrl: string;
  clickhouseUrl: string;
}

export class Stack {
  readonly #folder = tempDir('chaos');
  readonly #running = new Map<ProcessName, Running>();
  readonly #killed = new Set<Running>();
  readonly #stopping = new AbortController();
  #binary = '';
  #ports = { api: 0, nats: 0, http: 0, tcp: 0 };
  #natsUrl = '';
  #clickhouseUrl = '';
  /** What ended although nobody ended it. */
  readonly unexpected: string[] = [];

  get address(): StackAddress {
    return {
      url: `http://127.0.0.1:${String(this.#ports.api)}`,
      org: 'org_chaos',
      key: KEY,
      natsUrl: this.#natsUrl,
      clickhouseUrl: this.#clickhouseUrl,
    };
  }

  /** Where the processes keep their data and logs. */
  get folder(): string {
    return this.#folder;
  }

  /** Where the logs of the processes are while the stack exists. */
  get logs(): string {
    return path.join(this.#folder, 'logs');
  }

  async start(): Promise<void> {
    mkdirSync(this.logs);
    this.#binary = await findNatsServer(console.error);
    this.#ports = { api: await freePort(), nats: await freePort(), http: await freePort(), tcp: await freePort() };
    await Promise.all([this.boot('nats'), this.boot('clickhouse')]);
    await Promise.all([this.boot('api'), this.boot('worker-1'), this.boot('worker-2')]);
  }

  /** Starts a process that does not run, and waits until it is ready. */
  async boot(name: ProcessName): Promise<void> {
    const running = await this.#launch(name);
    if (this.#stopping.signal.aborted) {
      await running.stop();
      return;
    }
    this.#running.set(name, running);
    void running.exited.then((exit) => {
      if (this.#killed.has(running) || this.#stopping.signal.aborted) return;
      this.unexpected.push(`${name} ended by itself: ${describeExit(exit)}`);
      this.#running.delete(name);
    });
  }

  isRunning(name: ProcessName): boolean {
    return this.#running.has(name);
  }

  /** kill -9; resolves when it is gone. */
  async kill(name: ProcessName): Promise<void> {
    const running = this.#running.get(name);
    if (running === undefined) return;
    this.#killed.add(running);
    this.#running.delete(name);
    running.kill();
    await running.exited;
  }

  /** SIGSTOP and SIGCONT. */
  pause(name: ProcessName): void {
    this.#signal(name, 'SIGSTOP');
  }

  resume(name: ProcessName): void {
    this.#signal(name, 'SIGCONT');
  }

  /** Ends everything in order. `keep`: leaves the folder, for somebody to look at. */
  async stop(keep = false): Promise<void> {
    this.#stopping.abort();
    for (const group of [['api'], ['worker-1', 'worker-2'], ['clickhouse', 'nats']] as const)
      await Promise.all(group.map(async (name) => this.#running.get(name)?.stop()));
    if (!keep) removeDir(this.#folder);
  }

  #signal(name: ProcessName, signal: NodeJS.Signals): void {
    const pid = this.#running.get(name)?.pid;
    if (pid !== undefined) process.kill(pid, signal);
  }

  async #launch(name: ProcessName): Promise<Running> {
    const file = (...parts: string[]): string => path.join(this.#folder, ...parts);
    if (name === 'nats') {
      const server = await startNats({
        binary: this.#binary,
        dataDir: file('nats'),
        port: this.#ports.nats,
        sync: 'always',
        token: TOKEN,
        logFile: file('logs', 'nats.log'),
      });
      this.#natsUrl = server.url;
      return { ...server, kill: () => server.child.kill('SIGKILL') };
    }
    if (name === 'clickhouse') {
      const { http, tcp } = this.#ports;
      const server = await startClickHouse({
        dataDir: file('clickhouse'),
        httpPort: http,
        tcpPort: tcp,
        appPassword: TOKEN,
        analystPassword: TOKEN,
        database: DATABASE,
        logFile: file('logs', 'clickhouse.log'),
        memoryMaxBytes: MEMORY_BYTES,
      });
      this.#clickhouseUrl = server.url;
      return { ...server, kill: () => server.child.kill('SIGKILL') };
    }
    const entry = path.join(ROOT, name === 'api' ? 'api' : 'pipeline', 'main.ts');
    return startNodeMain({
      name,
      entry,
      env: this.#env(),
      logFile: file('logs', `${name}.log`),
      signal: this.#stopping.signal,
      readyMsMax: READY_MS_MAX,
      stopMsMax: STOP_MS_MAX,
    });
  }

  #env(): Record<string, string | undefined> {
    const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SERVICE_')));
    return {
      ...own,
      ...TIMES,
      SERVICE_DATA_DIR: this.#folder,
      SERVICE_PORT: String(this.#ports.api),
      SERVICE_NATS_URL: this.#natsUrl,
      SERVICE_CLICKHOUSE_URL: this.#clickhouseUrl,
      SERVICE_ADMIN_TOKEN: TOKEN,
      SERVICE_BOOTSTRAP_ORG_ID: 'org_chaos',
      SERVICE_BOOTSTRAP_API_KEY: KEY,
      SERVICE_JWT_SECRET: `${TOKEN}${TOKEN}`,
      SERVICE_CLICKHOUSE_ANALYST_PASSWORD: TOKEN,
    };
  }
}

/** Of processes that listen on loopback for the length of a run. */
const TOKEN = 'chaos-token-of-this-run';
const KEY = 'sk_svc_chaos0123456789abcdef';
