// `npm start`: runs the whole service (ops/launch/supervisor.ts) for one data folder. `npm run dev`
// is the same with --watch: the API and the worker restart when a source file changes. Takes
// settings (ops/platform/env.ts); prints the address and secrets of the running service on the
// terminal. Guarantees: a problem that prevents the start is one clear line and exit code 1;
// SIGINT, SIGTERM and SIGHUP stop the processes in order; children of a killed supervisor end by
// themselves, and the next start stops the rest.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { banner } from './banner.ts';
import { makeLoginLink } from './login_link.ts';
import { desktopOpener, openBrowser, type Surroundings } from './open_browser.ts';
import { type Env, hasLocalLogin, isLoopback, parseEnv } from '../platform/env.ts';
import { redactText } from '../platform/logger.ts';
import { leave } from '../platform/leave.ts';
import { type DataLock, lockDataDir } from './process/lock.ts';
import { loadSecrets, markShown, secretsFile } from './secrets.ts';
import { watchSource } from './source_watch.ts';
import { type Addresses, Supervisor } from './supervisor.ts';

/** A signal within this time of the first counts as the same one. */
const SAME_SIGNAL_MS = 500;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const complain = (line: string): void => void process.stderr.write(`${line}\n`);

/**
 * The first signal stops the processes in order, the second kills all of them. The end of the
 * parent process counts as a signal.
 */
function handleSignals(supervisor: Supervisor, lock: DataLock): void {
  let signalledAt: number | null = null;
  const onSignal = (why: string): void => {
    if (signalledAt !== null) {
      // One key press or one kill often arrives twice: from the terminal and from the parent
      // process.
      if (performance.now() - signalledAt < SAME_SIGNAL_MS) return;
      supervisor.kill();
      leave(130);
    }
    signalledAt = performance.now();
    lock.markStopping();
    say(`${why}: stopping in order (a second signal stops everything at once) …`);
    void supervisor.stop(0);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  process.on('disconnect', () => {
    onSignal('The parent process has ended');
  });
  // A closed terminal must not interrupt the shutdown.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
}

const USAGE = `usage: npm start

Runs everything in one go: NATS, ClickHouse, the API and a pipeline worker. It takes no arguments; settings are environment
variables, listed with their defaults in ops/deploy/env.example:

  SERVICE_PORT=9000 SERVICE_DATA_DIR=/var/lib/millrace npm start

npm run dev does the same and restarts the API and the worker when a source file changes.
`;
const WATCH = '--watch';

/**
 * Returns the exit code when the command line asks for something else than a start; null to start.
 */
function answerArguments(args: readonly string[]): number | null {
  const [first] = args;
  if (first === undefined || (first === WATCH && args.length === 1)) return null;
  if (first === '--help' || first === '-h') {
    process.stdout.write(USAGE);
    return 0;
  }
  complain(
    `npm start takes no arguments, and got "${first}"; settings are environment variables: ops/deploy/env.example (--help says more)`,
  );
  return 1;
}

async function main(): Promise<number> {
  const began = performance.now();
  const env = parseEnv(process.env);
  const dataDir = path.resolve(env.SERVICE_DATA_DIR);
  const lock = await lockDataDir(dataDir, say);
  const fresh = !existsSync(secretsFile(dataDir));
  if (fresh) say(`First start: creating ${shown(dataDir)} …`);
  const secrets = loadSecrets(dataDir);
  const watching = process.argv.includes(WATCH);
  const supervisor = new Supervisor({ env, dataDir, secrets, say, complain, keepTrying: watching });
  handleSignals(supervisor, lock);
  if (watching) {
    const stopWatching = watchSource(path.resolve(import.meta.dirname, '../..'), (file) => {
      say(`${file} changed: restarting the API and the worker.`);
      void supervisor.restartMains();
    });
    void supervisor.ended.then(stopWatching);
  }
  try {
    const addresses = await supervisor.start();
    if (addresses !== null) {
      const portal = await portalLink(env, addresses);
      process.stdout.write(
        banner({
          ...addresses,
          portal,
          orgId: env.SERVICE_BOOTSTRAP_ORG_ID,
          // The commands to try contain the key itself, because the variable may not be set in the
          // shell that they are pasted into.
          apiKey: env.SERVICE_ENV === 'production' ? null : (env.SERVICE_BOOTSTRAP_API_KEY ?? secrets.api_key),
          apiKeyGiven: env.SERVICE_BOOTSTRAP_API_KEY !== undefined,
          adminToken: env.SERVICE_ADMIN_TOKEN === undefined ? secrets.admin_token : null,
          analystPassword: env.SERVICE_CLICKHOUSE_ANALYST_PASSWORD === undefined ? secrets.analyst_password : null,
          secretsFile: shown(secretsFile(dataDir)),
          first: !secrets.shown,
          seconds: (performance.now() - began) / 1000,
        }),
      );
      markShown(dataDir, secrets);
      const opener = env.SERVICE_OPEN && portal?.includes('#') === true ? desktopOpener(surroundings()) : null;
      if (opener !== null && portal !== null) openBrowser(opener, path.join(dataDir, 'run'), portal);
    }
  } catch (error) {
    complain(lineOf(error));
    void supervisor.stop(1);
  }
  const code = await supervisor.ended;
  lock.release();
  return code;
}

/**
 * Returns the address of the portal: a login link, or without a ticket where people log in with tokens; null where no
 * portal is served.
 */
async function portalLink(env: Env, addresses: Addresses): Promise<string | null> {
  if (!env.SERVICE_PORTAL) return null;
  const page = `${addresses.baseUrl}/`;
  if (!hasLocalLogin(env) || !isLoopback(URL.parse(page)?.hostname ?? '')) return page;
  try {
    return await makeLoginLink(addresses);
  } catch (error) {
    complain(`No login link could be made (npm run login tries again): ${lineOf(error)}`);
    return page;
  }
}

const surroundings = (): Surroundings => ({
  platform: process.platform,
  env: process.env,
  isTerminal: process.stdout.isTTY,
});

/** Returns a path as the user would write it. */
function shown(file: string): string {
  const relative = path.relative(process.cwd(), file);
  return relative.startsWith('..') || relative === '' ? file : relative;
}

/** Returns one line for a problem that the user can fix, and the whole stack for a defect. */
function lineOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const defect = error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
  return redactText(defect ? (error.stack ?? error.message) : error.message);
}

try {
  const answered = answerArguments(process.argv.slice(2));
  const code = answered ?? (await main());
  if (answered === null && code === 0) say('Stopped.');
  leave(code);
} catch (error) {
  complain(lineOf(error));
  leave(1);
}
