// Supervisor: runs everything of `npm start`, which is nats-server, the embedded ClickHouse, the
// API and the pipeline. Takes settings, the locked data folder and its secrets; starts the
// processes in the order of their dependencies. Guarantees: problems are found before anything
// starts; a child that dies is restarted on its port; stop() drains in order.
import { mkdirSync, statfsSync } from 'node:fs';
import path from 'node:path';
import { startClickHouse } from './clickhouse/server.ts';
import { type Env, hasStore } from '../platform/env.ts';
import { PortalBuilds } from './portal/builds.ts';
import { findNatsServer } from './nats/install.ts';
import { startNats } from './nats/server.ts';
import { SupervisedProcess, type Running } from './process/supervised_process.ts';
import {
  type LineFilter,
  LogFollower,
  errorsOfClickHouse,
  errorsOfNats,
  warningsOfRecords,
} from './process/log_file.ts';
import { startNodeMain } from './process/node_main.ts';
import { stopLeftovers } from './process/pid_files.ts';
import { freePort, whyNotFree } from './process/ports.ts';
import { checkNats, checkStore } from './reachable.ts';
import { type Secrets, writeAddresses } from './secrets.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const LOCALHOST = '127.0.0.1';
const DATABASE = 'millrace';
/** Memory of the engine; with all other processes the service stays within 2 GB under load. */
const CLICKHOUSE_MEMORY_BYTES = 1_200_000_000;
/**
 * Maximum silence of a child that is starting. How long the pipeline takes depends on the store;
 * meanwhile it reports that it is starting.
 */
const READY_MS_MAX = 60_000;
const API_STOP_MS_MAX = 15_000;
const PIPELINE_STOP_MS_MAX = 20_000;
/**
 * Share of a small disk that the ingest log takes at most, unless SERVICE_LOG_MAX_BYTES sets the
 * size.
 */
const LOG_DISK_SHARE = 0.5;
/** Free bytes on a disk that was full at which nats-server is restarted. */
const REVIVE_BYTES_MIN = 64 * 1024 ** 2;
const REVIVE_LOOK_MS = 1000;
/** Order of stopping: a process stops before those that it writes to. */
const STOP_ORDER = [['api'], ['pipeline'], ['nats', 'clickhouse']] as const;
type ChildName = (typeof STOP_ORDER)[number][number];

export interface SupervisorOptions {
  env: Env;
  /** Absolute path. */
  dataDir: string;
  secrets: Secrets;
  /** Prints one line of information. */
  say: (line: string) => void;
  /** Prints one line about a problem. */
  complain: (line: string) => void;
  /** True for `npm run dev`: the API and the worker are restarted however often they fail. */
  keepTrying?: boolean;
}

/** Addresses of the running service. */
export interface Addresses {
  baseUrl: string;
  /** http://host:port of the embedded ClickHouse; null with an external one. */
  clickhouse: string | null;
  /** Address of NATS, with its token. */
  natsUrl: string;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #env: Env;
  readonly #children = new Map<ChildName, SupervisedProcess>();
  readonly #logs: LogFollower;
  readonly #portal: PortalBuilds;
  readonly #ended = Promise.withResolvers<number>();
  /** Set while nats-server waits for space on the disk. */
  #reviving: NodeJS.Timeout | undefined;
  #stopping = false;
  #natsUrl: string | undefined;
  #natsPort: number | null = null;
  #clickhouseUrl: string | undefined;
  #clickhouseHttp: string | null = null;
  #apiPort: number;

  constructor(options: SupervisorOptions) {
    const { env } = options;
    this.#options = options;
    this.#env = env;
    this.#logs = new LogFollower(options.complain);
    this.#portal = new PortalBuilds(options.complain);
    this.#natsUrl = env.SERVICE_NATS_URL;
    this.#clickhouseUrl = env.SERVICE_CLICKHOUSE_URL;
    this.#apiPort = env.SERVICE_PORT;
  }

  /** Resolves with the exit code when everything has stopped. */
  get ended(): Promise<number> {
    return this.#ended.promise;
  }

  /**
   * Starts all processes in order.
   * @returns null when stop() was called meanwhile
   * @throws Error with one line that says what prevents the start
   */
  async start(): Promise<Addresses | null> {
    try {
      await this.#checkSurroundings();
      this.#portalDir();
      await Promise.all([this.#startNats(), this.#startClickHouse()]);
      await Promise.all([this.#startMain('api'), this.#startMain('pipeline')]);
    } catch (error) {
      if (this.#stopping) return null;
      throw error;
    }
    if (this.#stopping) return null;
    const host = ['0.0.0.0', '::'].includes(this.#env.SERVICE_HOST) ? LOCALHOST : this.#env.SERVICE_HOST;
    const baseUrl = `http://${host.includes(':') ? `[${host}]` : host}:${this.#apiPort}`;
    writeAddresses(this.#options.dataDir, {
      base_url: baseUrl,
      org_id: this.#env.SERVICE_BOOTSTRAP_ORG_ID,
      nats_port: this.#natsPort,
    });
    return { baseUrl, clickhouse: this.#clickhouseHttp, natsUrl: this.#natsUrl ?? '' };
  }

  /** Stops all processes in order. A second call does nothing. */
  async stop(code: number): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    clearInterval(this.#reviving);
    this.#portal.stop();
    for (const group of STOP_ORDER) await Promise.all(group.map(async (name) => this.#children.get(name)?.stop()));
    this.#logs.stop();
    this.#ended.resolve(code);
  }

  /**
   * Restarts the API and the worker after a change of their code. NATS and ClickHouse keep running.
   */
  async restartMains(): Promise<void> {
    await Promise.all([this.#children.get('api')?.restart(), this.#children.get('pipeline')?.restart()]);
  }

  /** Kills every child at once. */
  kill(): void {
    this.#portal.stop();
    for (const child of this.#children.values()) child.kill();
  }

  #file(name: string): string {
    return path.join(this.#options.dataDir, name);
  }

  /**
   * Stops leftovers of an earlier start, and checks ports and external servers. Each problem is one
   * line.
   */
  async #checkSurroundings(): Promise<void> {
    const left = await stopLeftovers(this.#file('run'), STOP_ORDER);
    if (left.length > 0)
      this.#options.say(`Stopped processes that an earlier start had left running: ${left.join(', ')}.`);
    const { SERVICE_HOST, SERVICE_PORT, SERVICE_OTLP_GRPC_PORT, SERVICE_CLICKHOUSE_PORT } = this.#env;
    await checkPort('SERVICE_PORT', SERVICE_HOST, SERVICE_PORT);
    if (SERVICE_OTLP_GRPC_PORT !== undefined)
      await checkPort('SERVICE_OTLP_GRPC_PORT', SERVICE_HOST, SERVICE_OTLP_GRPC_PORT);
    if (!hasStore(this.#env)) await checkPort('SERVICE_CLICKHOUSE_PORT', LOCALHOST, SERVICE_CLICKHOUSE_PORT);
    if (this.#natsUrl !== undefined) await checkNats(this.#natsUrl);
    await checkStore(this.#env);
  }

  async #startNats(): Promise<void> {
    if (this.#natsUrl !== undefined) return;
    const binary = await findNatsServer(this.#options.say);
    const port = await freePort();
    this.#natsPort = port;
    const logFile = this.#log(
      'nats',
      (line) => {
        if (/no space left on device/i.test(line)) this.#reviveNats();
        return errorsOfNats(line);
      },
      false,
    );
    const { SERVICE_NATS_SYNC: sync } = this.#env;
    const token = this.#options.secrets.nats_token;
    await this.#keep('nats', async () => {
      const server = await startNats({ binary, dataDir: this.#file('nats'), port, sync, token, logFile });
      this.#natsUrl = server.url;
      return { ...server, kill: () => server.child.kill('SIGKILL') };
    });
  }

  #isDiskFull(): boolean {
    const { bsize, bavail } = statfsSync(this.#options.dataDir);
    return bsize * bavail < REVIVE_BYTES_MIN;
  }

  /**
   * A stream whose write failed on a full disk accepts nothing more until the server restarts, even
   * when there is space again (measured with 2.15: every publish goes unanswered). nats-server is
   * therefore restarted as soon as there is space.
   */
  #reviveNats(): void {
    if (this.#reviving !== undefined || this.#stopping) return;
    this.#options.complain('The disk is full: nothing can be stored until there is space.');
    this.#reviving = setInterval(() => {
      if (this.#isDiskFull()) return;
      clearInterval(this.#reviving);
      this.#reviving = undefined;
      this.#options.say('The disk has space again: restarting nats-server.');
      void this.#children.get('nats')?.restart();
    }, REVIVE_LOOK_MS);
  }

  async #startClickHouse(): Promise<void> {
    if (hasStore(this.#env)) return;
    const httpPort = this.#env.SERVICE_CLICKHOUSE_PORT === 0 ? await freePort() : this.#env.SERVICE_CLICKHOUSE_PORT;
    const logFile = this.#log('clickhouse/server', errorsOfClickHouse, false);
    await this.#keep('clickhouse', async () => {
      const server = await startClickHouse({
        dataDir: this.#file('clickhouse'),
        httpPort,
        appPassword: this.#options.secrets.clickhouse_app_password,
        analystPassword: this.#env.SERVICE_CLICKHOUSE_ANALYST_PASSWORD ?? this.#options.secrets.analyst_password,
        database: DATABASE,
        logFile,
        memoryMaxBytes: CLICKHOUSE_MEMORY_BYTES,
        queryLog: this.#env.SERVICE_CLICKHOUSE_QUERY_LOG,
        nice: this.#env.SERVICE_LANDING_NICE,
      });
      this.#clickhouseUrl = server.url;
      return { ...server, kill: () => server.child.kill('SIGKILL') };
    });
    this.#clickhouseHttp = `http://${LOCALHOST}:${httpPort}`;
  }

  async #startMain(name: 'api' | 'pipeline'): Promise<void> {
    const logFile = this.#log(name, warningsOfRecords, true);
    await this.#keep(name, async (signal) => {
      const main = await startNodeMain({
        name,
        entry: path.join(ROOT, name, 'main.ts'),
        env: { ...this.#childEnv(), SERVICE_PORTAL_DIR: name === 'api' ? this.#portalDir() : undefined },
        logFile,
        signal,
        readyMsMax: READY_MS_MAX,
        stopMsMax: name === 'api' ? API_STOP_MS_MAX : PIPELINE_STOP_MS_MAX,
        nice: name === 'api' ? 0 : this.#env.SERVICE_LANDING_NICE,
      });
      // A restarted API keeps the port that clients know.
      if (name === 'api') this.#apiPort = main.port ?? this.#apiPort;
      return main;
    });
  }

  async #keep(name: ChildName, start: (signal: AbortSignal) => Promise<Running>): Promise<void> {
    if (this.#stopping) return;
    const child = new SupervisedProcess({
      name,
      runDir: this.#file('run'),
      start,
      excused: () => this.#options.keepTrying === true || this.#isDiskFull(),
      onDeath: this.#options.complain,
      onGiveUp: (line) => {
        this.#options.complain(`${line}; stopping everything (logs in ${this.#file('logs')})`);
        void this.stop(1);
      },
    });
    this.#children.set(name, child);
    await child.start();
  }

  #log(name: string, filter: LineFilter, rotate: boolean): string {
    const file = this.#file(`logs/${name}.log`);
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    this.#logs.add(path.dirname(name) === '.' ? name : path.dirname(name), file, filter, rotate);
    return file;
  }

  /**
   * Returns the folder of the portal's files, which a child process builds where they are missing; undefined where no
   * portal is served. A restarted API gets the folder of the sources at that time.
   */
  #portalDir(): string | undefined {
    const { SERVICE_PORTAL, SERVICE_PORTAL_DIR } = this.#env;
    if (!SERVICE_PORTAL || this.#stopping) return undefined;
    return SERVICE_PORTAL_DIR ?? this.#portal.begin();
  }

  #childEnv(): Record<string, string | undefined> {
    const {
      SERVICE_ADMIN_TOKEN,
      SERVICE_BOOTSTRAP_API_KEY,
      SERVICE_JWT_SECRET,
      SERVICE_CLICKHOUSE_ANALYST_PASSWORD,
      SERVICE_ENCRYPTION_KEY,
    } = this.#env;
    return {
      ...process.env,
      SERVICE_DATA_DIR: this.#options.dataDir,
      SERVICE_PORT: String(this.#apiPort),
      // There is one API process, so no other one could take its requests meanwhile.
      SERVICE_DRAIN_DELAY_MS: '0',
      SERVICE_NATS_URL: this.#natsUrl,
      SERVICE_CLICKHOUSE_URL: this.#clickhouseUrl,
      SERVICE_CLICKHOUSE_DATA_DIR: hasStore(this.#env) ? undefined : this.#file('clickhouse'),
      SERVICE_DISK_GUARD_DIR: this.#env.SERVICE_DISK_GUARD_DIR ?? this.#options.dataDir,
      SERVICE_LOG_MAX_BYTES: String(logBytesMax(this.#env, this.#options.dataDir)),
      SERVICE_ADMIN_TOKEN: SERVICE_ADMIN_TOKEN ?? this.#options.secrets.admin_token,
      SERVICE_BOOTSTRAP_API_KEY: SERVICE_BOOTSTRAP_API_KEY ?? this.#options.secrets.api_key,
      SERVICE_JWT_SECRET: SERVICE_JWT_SECRET ?? this.#options.secrets.jwt_secret,
      SERVICE_CLICKHOUSE_ANALYST_PASSWORD:
        SERVICE_CLICKHOUSE_ANALYST_PASSWORD ?? this.#options.secrets.analyst_password,
      SERVICE_ENCRYPTION_KEY: SERVICE_ENCRYPTION_KEY ?? this.#options.secrets.encryption_key,
    };
  }
}

async function checkPort(setting: string, host: string, port: number): Promise<void> {
  const code = port === 0 ? null : await whyNotFree(host, port);
  if (code === null) return;
  const why = code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be listened on (${code})`;
  throw new Error(
    `${setting}: port ${port} on ${host} ${why}; stop it, or set ${setting} to another port (0 picks a free one)`,
  );
}

function logBytesMax(env: Env, dataDir: string): number {
  if (process.env['SERVICE_LOG_MAX_BYTES'] !== undefined) return env.SERVICE_LOG_MAX_BYTES;
  const { bsize, blocks } = statfsSync(dataDir);
  return Math.min(env.SERVICE_LOG_MAX_BYTES, Math.floor(bsize * blocks * LOG_DISK_SHARE));
}
