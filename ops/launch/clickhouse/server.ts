// Starts the embedded ClickHouse as a child process: writes its configuration, starts it, and waits
// until it answers on its port. Takes a data folder, a port and passwords; returns the URLs of its
// two users and a way to stop it. It does not restart the engine.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, writeFileSync, closeSync } from 'node:fs';
import { get } from 'node:http';
import path from 'node:path';
import { statementNice } from '../../platform/clickhouse/statement_nice.ts';
import { reserveOf } from '../../platform/disk_watch.ts';
import { freePort } from '../process/ports.ts';
import { type Exit, exitOf, hasEnded, stopChild } from '../process/child.ts';
import { lowerPriority } from '../process/priority.ts';
import type { ClusterConfig } from './cluster.ts';
import { serverXml, usersXml } from './config.ts';
import { ENGINE_HEADER } from './http_rules.ts';
import type { Launch } from './launcher.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const LAUNCHER = path.join(import.meta.dirname, 'launcher.ts');
const READY_MS_MAX = 30_000;
const PROBE_EVERY_MS = 20;
/**
 * Time after which a stop counts as hung: the engine finishes running queries for at most 5 s, then
 * ends.
 */
const STOP_MS_MAX = 15_000;
const LOG_TAIL_BYTES = 4000;
/** Folder in the engine's own; it exists only during the start. */
const WORKING_FOLDER = 'cwd';

export interface ClickHouseOptions {
  /** Folder of the engine's own files; its parent must exist. The engine locks it. */
  dataDir: string;
  /** 0 for a free port. */
  httpPort: number;
  /** 127.0.0.1 if absent. */
  listenHost?: string;
  /** Must not be empty, like every password. */
  appPassword: string;
  analystPassword: string;
  database: string;
  /**
   * Further name, or pattern that ends with *, of databases that `app` may use: many tests share
   * one engine.
   */
  moreDatabases?: string;
  /**
   * The engine may read and change everything in the folder of this file, so use a folder of its
   * own.
   */
  logFile: string;
  memoryMaxBytes: number;
  /** Nice value, see lowerPriority; 0 if absent. Merges have that of statementNice. */
  nice?: number;
  /** True to record statements and new parts, see ServerConfig; false if absent. */
  queryLog?: boolean;
  /** Makes the engine a shard of a cluster; without it the engine opens no port but that of HTTP. */
  cluster?: ClusterConfig | undefined;
}

/** Running engine. */
export interface ClickHouseServer {
  /** http://app:password@host:port/database, as SERVICE_CLICKHOUSE_URL accepts it. */
  url: string;
  analystUrl: string;
  httpPort: number;
  pid: number;
  child: ChildProcess;
  /** Lets running queries finish for up to 5 s; kills the engine when it does not end. */
  stop(): Promise<void>;
  exited: Promise<Exit>;
}

/**
 * Starts an engine and waits until it answers.
 * @throws Error with one line that says why the engine ended first, or that it did not answer
 * within 30 s
 */
export async function startClickHouse(options: ClickHouseOptions): Promise<ClickHouseServer> {
  if (options.appPassword === '' || options.analystPassword === '')
    throw new Error('a password of a ClickHouse user is empty');
  const host = options.listenHost ?? '127.0.0.1';
  const httpPort = options.httpPort === 0 ? await freePort(host) : options.httpPort;
  const displayName = `millrace-${randomUUID()}`;
  const launch = prepare(options, { host, httpPort, displayName });
  mkdirSync(path.dirname(options.logFile), { recursive: true });
  const log = openSync(options.logFile, 'a', 0o600);
  // The launcher confines itself by execve, which Node marks as experimental; without the flag
  // every start would log a warning.
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', LAUNCHER, JSON.stringify(launch)], {
    // The child has a process group of its own, so that Ctrl-C in the terminal reaches only the
    // supervisor, which stops processes in order.
    detached: true,
    // The launcher removes this folder (see openPorts there).
    cwd: path.join(path.resolve(options.dataDir), WORKING_FOLDER),
    // stdin closes when this process dies, which tells the engine's process to stop.
    stdio: ['pipe', log, log],
    // The engine gets no variable of the service's own environment, because it needs no secret.
    env: { ...pick(process.env, ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']), UV_THREADPOOL_SIZE: '8' },
  });
  closeSync(log);
  lowerPriority(child.pid, options.nice ?? 0);
  const exited = exitOf(child);
  await ready({ child, host, httpPort, displayName, logFile: options.logFile });
  // The engine reads these files only at its start. They contain hashes of passwords, and the secret
  // of a cluster.
  for (const name of ['users.xml', 'config.xml']) rmSync(path.join(options.dataDir, name), { force: true });
  const userUrl = (user: string, password: string): string =>
    `http://${user}:${encodeURIComponent(password)}@${host}:${httpPort}/${options.database}`;
  return {
    url: userUrl('app', options.appPassword),
    analystUrl: userUrl('analyst', options.analystPassword),
    httpPort,
    pid: child.pid ?? 0,
    child,
    exited,
    stop: () => stopChild(child, exited, STOP_MS_MAX),
  };
}

interface Listen {
  host: string;
  httpPort: number;
  displayName: string;
}

/**
 * Writes the configuration, and creates the FIFOs that open the engine's port and keep it running.
 */
function prepare(options: ClickHouseOptions, { host, httpPort, displayName }: Listen): Launch {
  const { dataDir, database, moreDatabases, appPassword, analystPassword, memoryMaxBytes, logFile } = options;
  const file = (name: string): string => path.join(path.resolve(dataDir), name);
  mkdirSync(file('backups'), { recursive: true });
  chmodSync(path.resolve(dataDir), 0o700);
  // In this mode the system database is in memory; a folder left by an earlier run would
  // permanently stop its logs.
  rmSync(file('data/system'), { recursive: true, force: true });
  rmSync(file(WORKING_FOLDER), { recursive: true, force: true });
  mkdirSync(file(WORKING_FOLDER));
  const fifos = { start: file('start.fifo'), run: file('run.fifo'), end: file('end.fifo') };
  for (const fifo of Object.values(fifos)) rmSync(fifo, { force: true });
  execFileSync('mkfifo', ['-m', '600', ...Object.values(fifos)]);
  const disk = statfsSync(path.resolve(dataDir));
  const write = (name: string, text: string): string => {
    writeFileSync(file(name), text, { mode: 0o600 });
    return file(name);
  };
  const usersFile = write(
    'users.xml',
    usersXml({
      database,
      ...(moreDatabases === undefined ? {} : { moreDatabases }),
      appPassword,
      analystPassword,
      memoryMaxBytes,
      queryLog: options.queryLog ?? false,
      sharded: options.cluster !== undefined,
    }),
  );
  const configFile = write(
    'config.xml',
    serverXml({
      usersFile,
      logFile: path.resolve(logFile),
      backupDir: file('backups'),
      displayName,
      memoryMaxBytes,
      diskKeepBytes: Math.floor(reserveOf(disk.bsize * disk.blocks) / 2),
      mergeNice: statementNice(options.nice ?? 0).usual,
      queryLog: options.queryLog ?? false,
      cluster: options.cluster,
    }),
  );
  const args = [
    `--path=${path.resolve(dataDir)}`,
    `--http_port=${httpPort}`,
    `--listen_host=${host}`,
    `--config-file=${configFile}`,
    '--log-level=warning',
    // For the terminal of a shard, see terminal.ts.
    ...(options.cluster === undefined ? [] : ['--interactive', '--history_file=/dev/null']),
    '--queries-file',
    ...Object.values(fifos),
  ];
  return {
    fifos,
    args,
    sharded: options.cluster !== undefined,
    stdin: null,
    confinement: confinementOf(path.resolve(dataDir), path.dirname(path.resolve(logFile))),
  };
}

/**
 * Returns the files that the engine's process may use: its own folder and that of its log, and,
 * read-only, what Node, libraries and time zones need.
 */
function confinementOf(dataDir: string, logDir: string): NonNullable<Launch['confinement']> {
  return {
    writable: [dataDir, logDir, ...['null', 'zero', 'random', 'urandom'].map((name) => `/dev/${name}`)],
    executable: ['/usr', '/lib', '/lib64', '/bin', process.execPath, path.join(ROOT, 'node_modules')],
    readable: [
      ...['package.json', 'ops/launch/clickhouse'].map((name) => path.join(ROOT, name)),
      ...[
        'localtime',
        'timezone',
        'hosts',
        'host.conf',
        'resolv.conf',
        'nsswitch.conf',
        'gai.conf',
        'services',
        'ld.so.cache',
        'ssl',
      ].map((name) => `/etc/${name}`),
      // Only parts of /proc: the rest contains the environment of every other process of this user.
      // /proc/self stays correct through execve.
      ...[
        'self',
        'sys',
        'meminfo',
        'stat',
        'cpuinfo',
        'loadavg',
        'uptime',
        'vmstat',
        'diskstats',
        'filesystems',
        'version',
        'pressure',
      ].map((name) => `/proc/${name}`),
      '/sys',
    ],
  };
}

const pick = (env: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv =>
  Object.fromEntries(names.filter((name) => env[name] !== undefined).map((name) => [name, env[name]]));

interface Starting {
  child: ChildProcess;
  host: string;
  httpPort: number;
  displayName: string;
  logFile: string;
}

async function ready({ child, host, httpPort, displayName, logFile }: Starting): Promise<void> {
  const deadline = performance.now() + READY_MS_MAX;
  while (!hasEnded(child) && performance.now() < deadline) {
    if ((await serverName(host, httpPort)) === displayName) return;
    await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
  }
  child.kill('SIGKILL');
  throw new Error(`ClickHouse did not start: ${whyFrom(logFile)}`);
}

/**
 * Returns the name that the server on this port reports; null if none answers. Closes its
 * connection, because an open one delays a stop.
 */
function serverName(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const req = get(
      { host, port, path: '/ping', agent: false, headers: { connection: 'close' }, timeout: 1000 },
      (res) => {
        res.resume();
        const name = res.headers[ENGINE_HEADER.toLowerCase()];
        resolve(typeof name === 'string' ? name : null);
      },
    );
    req.on('timeout', () => req.destroy());
    req.on('error', () => {
      resolve(null);
    });
  });
}

/** Returns the reason why the engine ended as one line, from the end of its log. */
function whyFrom(logFile: string): string {
  const lines = readFileSync(logFile, 'utf8').slice(-LOG_TAIL_BYTES).trim().split('\n');
  const line =
    lines.findLast((text) => text.includes('Code: ') || text.includes('<Error>') || text.includes('<Fatal>')) ??
    lines.at(-1) ??
    '';
  const reason = line.slice(Math.max(0, line.indexOf('Code: '))).slice(0, 300);
  return `${reason === '' ? 'it wrote no reason' : reason} (see ${logFile})`;
}
