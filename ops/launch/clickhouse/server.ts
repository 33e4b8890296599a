// The embedded ClickHouse as a child process: writes its configuration, starts it, waits until it is the one that answers.
// Comes in: a data folder, a port, passwords. Goes out: URLs of its two users, and a way to stop it. It does not restart it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, writeFileSync, closeSync } from 'node:fs';
import { get } from 'node:http';
import path from 'node:path';
import { reserveOf } from '../../platform/disk_watch.ts';
import { freePort } from '../process/ports.ts';
import { type Exit, exitOf, hasEnded, stopChild } from '../process/child.ts';
import { lowerPriority } from '../process/priority.ts';
import { serverXml, usersXml } from './config.ts';
import { ENGINE_HEADER } from './http_rules.ts';
import type { Launch } from './launcher.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const LAUNCHER = path.join(import.meta.dirname, 'launcher.ts');
const READY_MS_MAX = 30_000;
const PROBE_EVERY_MS = 20;
/** The engine finishes running queries for at most 5 s, then ends; beyond this it hangs. */
const STOP_MS_MAX = 15_000;
const LOG_TAIL_BYTES = 4000;
/** In the engine's folder; it exists during the start only. */
const WORKING_FOLDER = 'cwd';

export interface ClickHouseOptions {
  /** Folder of the engine's own files; its parent must exist. One engine at a time: the engine itself locks it. */
  dataDir: string;
  /** 0: a free one. */
  httpPort: number;
  /** Unset: 127.0.0.1. */
  listenHost?: string;
  /** Not empty, like every password. */
  appPassword: string;
  analystPassword: string;
  database: string;
  /** A further name, or pattern with a * at its end, of databases that app may use: many tests share one engine. */
  moreDatabases?: string;
  /** The engine may read and change everything in its folder: give it one of its own. */
  logFile: string;
  memoryMaxBytes: number;
  /** See lowerPriority; unset: 0. */
  nice?: number;
}

/** A running engine. */
export interface ClickHouseServer {
  /** http://app:password@host:port/database: what SERVICE_CLICKHOUSE_URL takes. */
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
 * @throws Error with one line saying why, when it ends first or does not answer within 30 s.
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
  // execve, by which it confines itself, is called experimental; the warning would stand in its log at every start.
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', LAUNCHER, JSON.stringify(launch)], {
    // A group of its own: Ctrl-C in the terminal must reach the supervisor alone, which stops things in order.
    detached: true,
    // The launcher removes this folder (see openPort there).
    cwd: path.join(path.resolve(options.dataDir), WORKING_FOLDER),
    // stdin ends with this process, and that tells the engine's.
    stdio: ['pipe', log, log],
    // Nothing of the service's own environment: the engine needs no secret.
    env: { ...pick(process.env, ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']), UV_THREADPOOL_SIZE: '8' },
  });
  closeSync(log);
  lowerPriority(child.pid, options.nice ?? 0);
  const exited = exitOf(child);
  await ready({ child, host, httpPort, displayName, logFile: options.logFile });
  // The engine reads these files at its start only. They hold hashes of passwords.
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

/** Writes the configuration, and makes the FIFOs that open the engine's port and keep it running. */
function prepare(options: ClickHouseOptions, { host, httpPort, displayName }: Listen): Launch {
  const { dataDir, database, moreDatabases, appPassword, analystPassword, memoryMaxBytes, logFile } = options;
  const file = (name: string): string => path.join(path.resolve(dataDir), name);
  mkdirSync(file('backups'), { recursive: true });
  chmodSync(path.resolve(dataDir), 0o700);
  // The system database is in memory in this mode; a folder left by an earlier run would stop its logs for good.
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
    }),
  );
  const args = [
    `--path=${path.resolve(dataDir)}`,
    `--http_port=${httpPort}`,
    `--listen_host=${host}`,
    `--config-file=${configFile}`,
    '--log-level=warning',
    '--queries-file',
    ...Object.values(fifos),
  ];
  return { fifos, args, confinement: confinementOf(path.resolve(dataDir), path.dirname(path.resolve(logFile))) };
}

/** What the engine's process may touch: its own folder and that of its log, and to read what Node, libraries and time zones need. */
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
      // Not /proc as a whole: the environment of every other process of this user is there. self stays itself through execve.
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

/** Returns the name that the server on this port gives, null when none answers. Closes its connection, since an open one delays a stop. */
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

/** The engine's last word on why it ended, from its log: one line. */
function whyFrom(logFile: string): string {
  const lines = readFileSync(logFile, 'utf8').slice(-LOG_TAIL_BYTES).trim().split('\n');
  const line =
    lines.findLast((text) => text.includes('Code: ') || text.includes('<Error>') || text.includes('<Fatal>')) ??
    lines.at(-1) ??
    '';
  const reason = line.slice(Math.max(0, line.indexOf('Code: '))).slice(0, 300);
  return `${reason === '' ? 'it ended without a word' : reason} (see ${logFile})`;
}
