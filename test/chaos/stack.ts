// The service as separate processes that can be killed one by one: nats-servers, ClickHouse, API
// processes, workers, and on request TCP proxies between them. Every process keeps its port and
// folder over restarts. stop() leaves nothing running and nothing on disk.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { startClickHouse } from '../../ops/launch/clickhouse/server.ts';
import { findNatsServer } from '../../ops/launch/nats/install.ts';
import { startNats } from '../../ops/launch/nats/server.ts';
import { describeExit } from '../../ops/launch/process/child.ts';
import type { Running } from '../../ops/launch/process/supervised_process.ts';
import { startNodeMain } from '../../ops/launch/process/node_main.ts';
import { freePort } from '../../ops/launch/process/ports.ts';
import { allDatabaseOf } from '../../sql/client/distributed.ts';
import { removeDir, tempDir } from '../support/temp.ts';
import { Network } from './network.ts';
import { Traffic } from './traffic.ts';

export type Kind = 'api' | 'worker' | 'nats' | 'clickhouse';
export type ProcessName = `${Kind}-${number}`;

export interface StackOptions {
  apis: number;
  workers: number;
  /** Number of nats-servers: a single one, or a cluster whose streams have as many replicas. */
  nats: number;
  /** Number of shards of ClickHouse: a single server, or engines that form a cluster. */
  shards: number;
  /** Puts proxies between the parts, for faults of the network. */
  proxied: boolean;
  /** Settings of the service beyond addresses and secrets. */
  env?: Record<string, string>;
  /** Folder to run in, which is kept; unset: a temporary one of its own. */
  folder?: string;
  /**
   * True: a worker syncs rows before each checkpoint, as with the embedded engine of npm start.
   * False: every insert does.
   */
  syncedByWorkers?: boolean;
  /** Folder of the version that API processes and workers start with; unset: this tree. */
  root?: string;
}

/** One API process, two workers, one nats-server: the stack that starts fastest. */
export const SMALL: StackOptions = { apis: 1, workers: 2, nats: 1, shards: 1, proxied: false };
/**
 * The stack of production: two API processes, three workers, a cluster of three nats-servers with a
 * replica in each.
 */
export const WHOLE: StackOptions = { apis: 2, workers: 3, nats: 3, shards: 1, proxied: true };

const ROOT = path.resolve(import.meta.dirname, '../..');
const DATABASE = 'millrace';
/** Partitions of the log in a stack with several shards. */
const PARTITIONS = 8;
const READY_MS_MAX = 90_000;
const STOP_MS_MAX = 30_000;
const MEMORY_BYTES = 1_200_000_000;
/** Traces complete quickly, so that a run can see each of them complete. */
const TIMES = { SERVICE_TRACE_GRACE_MS: '500', SERVICE_TRACE_IDLE_MS: '4000' };

export interface StackAddress {
  /** Address of the first API process. */
  url: string;
  /** Addresses of all API processes. */
  urls: string[];
  /** Chooses the API process of a request. */
  traffic: Traffic;
  org: string;
  key: string;
  adminToken: string;
  /** Addresses of all nats-servers, without the proxies. */
  natsUrl: string;
  /** Address without the proxies; with several shards, of the database that reads all of them. */
  clickhouseUrl: string;
}

const names = (kind: Kind, count: number): ProcessName[] =>
  Array.from({ length: count }, (_, i) => `${kind}-${i + 1}` as const);
const kindOf = (name: ProcessName): Kind => name.slice(0, name.indexOf('-')) as Kind;

export class Stack {
  readonly options: StackOptions;
  readonly #folder: string;
  readonly #running = new Map<ProcessName, Running>();
  readonly #killed = new Set<Running>();
  readonly #stopping = new AbortController();
  readonly #ports = new Map<string, number>();
  /** Folders of the versions of processes that have another one than at the start. */
  readonly #roots = new Map<ProcessName, string>();
  #traffic: Traffic | null = null;
  #binary = '';
  #network: Network | null = null;
  /** Addresses of the shards without the proxies, by process. */
  readonly #clickhouseUrls = new Map<ProcessName, string>();
  /** Whether the shards have the other of two divisions of the partitions. */
  #divided = false;
  /** Processes that ended by themselves. */
  readonly unexpected: string[] = [];

  constructor(options: StackOptions = SMALL) {
    this.options = options;
    this.#folder = options.folder ?? tempDir('chaos');
  }

  get address(): StackAddress {
    const urls = this.named('api').map((name) => `http://127.0.0.1:${this.#port(name)}`);
    return {
      url: urls[0] ?? '',
      urls,
      traffic: (this.#traffic ??= new Traffic(urls)),
      org: 'org_chaos',
      key: KEY,
      adminToken: TOKEN,
      natsUrl: this.#natsUrl((node) => this.#port(node)),
      clickhouseUrl: this.#allUrl(),
    };
  }

  /** The folder with the processes' data and logs. */
  get folder(): string {
    return this.#folder;
  }

  /** The folder of the processes' logs while the stack exists. */
  get logs(): string {
    return path.join(this.#folder, 'logs');
  }

  /** The proxies between the parts. @throws Error in a stack without proxies */
  get network(): Network {
    if (this.#network === null) throw new Error('this stack has no proxies');
    return this.#network;
  }

  /** All processes, in the order of their starts. */
  get processes(): ProcessName[] {
    return (['nats', 'clickhouse', 'api', 'worker'] as const).flatMap((kind) => this.named(kind));
  }

  named(kind: Kind): ProcessName[] {
    const { apis, workers, nats, shards } = this.options;
    return names(kind, { api: apis, worker: workers, nats, clickhouse: shards }[kind]);
  }

  async start(): Promise<void> {
    mkdirSync(this.logs, { recursive: true });
    this.#binary = await findNatsServer(console.error);
    for (const name of this.processes) this.#ports.set(name, await freePort());
    for (const name of this.named('nats')) this.#ports.set(`${name} routes`, await freePort());
    for (const name of this.named('clickhouse')) this.#ports.set(`${name} shards`, await freePort());
    if (this.options.proxied)
      this.#network = await Network.open({
        nats: this.named('nats').map((name) => ({ client: this.#port(name), routes: this.#port(`${name} routes`) })),
        clickhouse: this.named('clickhouse').map((name) => this.#port(name)),
      });
    await this.bootAll();
  }

  /** Addresses of each shard's own database, without the proxies, once the engines have started. */
  get shardUrls(): string[] {
    return this.named('clickhouse').flatMap((name) => this.#clickhouseUrls.get(name) ?? []);
  }

  /** Starts every process that does not run. */
  async bootAll(): Promise<void> {
    for (const kinds of [
      ['nats', 'clickhouse'],
      ['api', 'worker'],
    ] as const)
      await Promise.all(
        kinds
          .flatMap((kind) => this.named(kind))
          .filter((name) => !this.isRunning(name))
          .map((name) => this.boot(name)),
      );
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

  /** Folder of the version of an API process or worker. */
  rootOf(name: ProcessName): string {
    return this.#roots.get(name) ?? this.options.root ?? ROOT;
  }

  /** Sets the version that an API process or worker has from its next start on. */
  setRoot(name: ProcessName, root: string): void {
    this.#roots.set(name, root);
  }

  isRunning(name: ProcessName): boolean {
    return this.#running.has(name);
  }

  pidOf(name: ProcessName): number | undefined {
    return this.#running.get(name)?.pid;
  }

  /** Kills with kill -9; resolves when the process is gone. */
  async kill(name: ProcessName): Promise<void> {
    const running = this.#running.get(name);
    if (running === undefined) return;
    this.#killed.add(running);
    this.#running.delete(name);
    running.kill();
    await running.exited;
  }

  /** Sends SIGTERM; resolves when the process has ended. */
  async end(name: ProcessName): Promise<void> {
    const running = this.#running.get(name);
    if (running === undefined) return;
    this.#killed.add(running);
    this.#running.delete(name);
    await running.stop();
  }

  /** Gives processes that start from now on another division of the partitions among the shards, or the first again. */
  divide(): void {
    this.#divided = !this.#divided;
  }

  /** Sends SIGSTOP, and later SIGCONT. */
  pause(name: ProcessName): void {
    this.#signal(name, 'SIGSTOP');
  }

  resume(name: ProcessName): void {
    this.#signal(name, 'SIGCONT');
  }

  /** Ends everything in order. @param keep keeps the folder for inspection */
  async stop(keep = false): Promise<void> {
    this.#stopping.abort();
    for (const kinds of [['api'], ['worker'], ['clickhouse', 'nats']] as const)
      await Promise.all(kinds.flatMap((kind) => this.named(kind)).map(async (name) => this.#running.get(name)?.stop()));
    await this.#network?.close();
    if (!keep && this.options.folder === undefined) removeDir(this.#folder);
  }

  #port(name: string): number {
    return this.#ports.get(name) ?? 0;
  }

  #natsUrl(portOf: (node: ProcessName) => number): string {
    return this.named('nats')
      .map((node) => `nats://${TOKEN}@127.0.0.1:${portOf(node)}`)
      .join(',');
  }

  #signal(name: ProcessName, signal: NodeJS.Signals): void {
    const pid = this.#running.get(name)?.pid;
    if (pid !== undefined) process.kill(pid, signal);
  }

  async #launch(name: ProcessName): Promise<Running> {
    const kind = kindOf(name);
    if (kind === 'nats') return this.#launchNats(name);
    if (kind === 'clickhouse') return this.#launchClickHouse(name);
    return startNodeMain({
      name,
      entry: path.join(this.rootOf(name), kind === 'api' ? 'api' : 'pipeline', 'main.ts'),
      env: this.#env(name, kind),
      logFile: path.join(this.logs, `${name}.log`),
      signal: this.#stopping.signal,
      readyMsMax: READY_MS_MAX,
      stopMsMax: STOP_MS_MAX,
    });
  }

  async #launchNats(name: ProcessName): Promise<Running> {
    const nodes = this.named('nats');
    const index = nodes.indexOf(name);
    const alone = nodes.length === 1;
    const local = (port: number): string => `127.0.0.1:${port}`;
    const server = await startNats({
      binary: this.#binary,
      dataDir: path.join(this.#folder, alone ? 'nats' : name),
      port: this.#port(name),
      sync: 'always',
      token: TOKEN,
      logFile: path.join(this.logs, `${name}.log`),
      ...(alone
        ? {}
        : {
            cluster: {
              cluster: 'chaos',
              name,
              secret: TOKEN,
              listen: local(this.#port(`${name} routes`)),
              routes: nodes.flatMap((_, to) =>
                to === index
                  ? []
                  : [local(this.#network?.routePort(index, to) ?? this.#port(`${nodes[to] ?? ''} routes`))],
              ),
              // Behind proxies no process may learn a way around them.
              ...(this.#network === null
                ? {}
                : { advertise: this.#network.nowhere, clientAdvertise: this.#network.nowhere }),
            },
          }),
    });
    return { ...server, kill: () => server.child.kill('SIGKILL') };
  }

  async #launchClickHouse(name: ProcessName): Promise<Running> {
    const nodes = this.named('clickhouse');
    const tcpPort = this.#port(`${name} shards`);
    const shards = nodes.map((node) => ({ host: '127.0.0.1', tcpPort: this.#port(`${node} shards`) }));
    const server = await startClickHouse({
      dataDir: path.join(this.#folder, name),
      httpPort: this.#port(name),
      appPassword: TOKEN,
      analystPassword: TOKEN,
      database: DATABASE,
      logFile: path.join(this.logs, `${name}.log`),
      memoryMaxBytes: MEMORY_BYTES,
      ...(nodes.length === 1 ? {} : { cluster: { name: 'millrace', secret: TOKEN, tcpPort, shards } }),
    });
    this.#clickhouseUrls.set(name, server.url);
    return { ...server, kill: () => server.child.kill('SIGKILL') };
  }

  /** Returns the address by which all rows can be read. */
  #allUrl(): string {
    const url = new URL(this.#clickhouseUrls.get('clickhouse-1') ?? 'http://127.0.0.1');
    if (this.options.shards > 1) url.pathname = allDatabaseOf(DATABASE);
    return url.href;
  }

  /** Returns the settings that name the shards to a kind of process. */
  #store(kind: 'api' | 'worker'): Record<string, string> {
    const urls = this.named('clickhouse').map((name, index) => {
      const url = new URL(this.#clickhouseUrls.get(name) ?? 'http://127.0.0.1');
      if (this.#network !== null) url.port = String(this.#network.clickhousePort(kind, index));
      return url.href;
    });
    if (urls.length === 1) return { SERVICE_CLICKHOUSE_URL: urls[0] ?? '' };
    const moved = this.#divided ? Math.floor(PARTITIONS / urls.length / 2) : 0;
    const first = (shard: number): number =>
      Math.floor((shard * PARTITIONS) / urls.length) - (shard % urls.length === 0 ? 0 : moved);
    const shards = urls.map((url, index) => `s${index + 1}:${first(index)}-${first(index + 1) - 1}=${url}`);
    return { SERVICE_PARTITIONS: String(PARTITIONS), SERVICE_CLICKHOUSE_SHARDS: shards.join(' ') };
  }

  #env(name: ProcessName, kind: 'api' | 'worker'): Record<string, string | undefined> {
    const own = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('SERVICE_')));
    return {
      ...own,
      ...TIMES,
      SERVICE_DATA_DIR: this.#folder,
      SERVICE_PORT: String(kind === 'api' ? this.#port(name) : 0),
      SERVICE_NATS_URL: this.#natsUrl(
        (node) => this.#network?.natsPort(kind, this.named('nats').indexOf(node)) ?? this.#port(node),
      ),
      SERVICE_NATS_REPLICAS: String(this.options.nats),
      ...this.#store(kind),
      // The sync of a folder is one of its file system, so it is one of all shards.
      ...(this.options.syncedByWorkers === true
        ? { SERVICE_CLICKHOUSE_DATA_DIR: path.join(this.#folder, 'clickhouse-1') }
        : {}),
      SERVICE_ADMIN_TOKEN: TOKEN,
      SERVICE_BOOTSTRAP_ORG_ID: 'org_chaos',
      SERVICE_BOOTSTRAP_API_KEY: KEY,
      SERVICE_JWT_SECRET: `${TOKEN}${TOKEN}`,
      SERVICE_CLICKHOUSE_ANALYST_PASSWORD: TOKEN,
      ...this.options.env,
    };
  }
}

/** Token of processes that listen on loopback during a run. */
const TOKEN = 'chaos-token-of-this-run';
const KEY = 'sk_svc_chaos0123456789abcdef';
