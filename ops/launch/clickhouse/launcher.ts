// Process of the embedded ClickHouse: one call into libchdb runs the engine's own `clickhouse
// local` main, which opens its HTTP port, and that for other shards, and serves until a FIFO that it
// reads as a script is closed. Takes argv[2], JSON in the shape of Launch. The process first confines
// itself to its files, where the system supports it, and executes itself again, so that every thread
// is confined. It exits with code 0 after a request to stop (SIGTERM, or the end of stdin when the
// parent has died), else with 1: the engine returned by itself, and its log contains the reason.
import { closeSync, constants, openSync, rmdirSync, writeSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import path from 'node:path';
import { DataType, load, open } from 'ffi-rs';
import { libchdbPath } from 'chdb/libchdb';
import { z } from 'zod';
import { confine } from './confine.ts';
import { replaceStdin } from './terminal.ts';

/**
 * Time that the engine outlives a parent that died, so that other children can land their buffered
 * rows.
 */
const ORPHAN_GRACE_MS = 3000;

const paths = z.array(z.string());
const launchShape = z.object({
  /**
   * FIFOs that the engine reads as scripts in turn: opened after its start, while it runs, and
   * before it returns.
   */
  fifos: z.object({ start: z.string(), run: z.string(), end: z.string() }),
  args: paths,
  /** True to open the port for the other shards of a cluster too. */
  sharded: z.boolean(),
  /** See replaceStdin; null while the standard input is that of the parent. */
  stdin: z.object({ former: z.int(), controller: z.int() }).nullable(),
  /** Null when the process is already confined. */
  confinement: z.object({ readable: paths, executable: paths, writable: paths }).nullable(),
});

/** Argument of the process. */
export type Launch = z.infer<typeof launchShape>;

/**
 * Removes the working folder of this process, then lets the engine open its ports. Waits until
 * the engine has started, because its start needs a working folder. The reason: in this mode of the
 * engine the scalar function file() checks no right and reads any file that the process can read,
 * for every user. The function resolves the working folder first, and fails when there is none.
 */
async function openPorts(fifo: string, sharded: boolean): Promise<void> {
  const script = await openFile(fifo, 'w');
  rmdirSync(process.cwd());
  // The parent waits for HTTP, so an engine that is ready also answers the other shards.
  if (sharded) await script.write('SYSTEM START LISTEN TCP;\n');
  await script.write('SYSTEM START LISTEN HTTP;\n');
  await script.close();
}

/**
 * Gives this process a working folder again once the engine has closed its ports: the engine aborts
 * if it returns without one.
 */
async function restoreFolder(fifo: string, controller: number | undefined): Promise<void> {
  const script = await openFile(fifo, 'w');
  process.chdir(path.dirname(fifo));
  // After its scripts an engine with a terminal would wait for somebody to type a query.
  if (controller !== undefined) closeSync(controller);
  await script.close();
}

async function serve({ fifos, args, sharded, stdin }: Launch): Promise<number> {
  open({ library: 'chdb', path: libchdbPath() });
  const argv = ['clickhouse', ...args];
  // The call runs in a thread of libuv's pool for the life of the process. Its result must not be
  // read, because it may be freed already.
  const engine = load({
    library: 'chdb',
    funcName: 'chdb_query_cmdline',
    retType: DataType.External,
    paramsType: [DataType.I32, DataType.StringArray],
    paramsValue: [argv.length, argv],
    runInNewThread: true,
  });
  const script = openSync(fifos.run, constants.O_RDWR | constants.O_NONBLOCK);
  const asked = new AbortController();
  const stop = (): void => {
    if (asked.signal.aborted) return;
    asked.abort();
    writeSync(script, 'SYSTEM STOP LISTEN QUERIES ALL;\n');
    closeSync(script);
    void restoreFolder(fifos.end, stdin?.controller);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const parent = stdin === null ? process.stdin : new Socket({ fd: stdin.former, readable: true, writable: false });
  parent.on('close', () => setTimeout(stop, ORPHAN_GRACE_MS)).resume();
  await Promise.race([engine, openPorts(fifos.start, sharded)]);
  await engine;
  return asked.signal.aborted ? 0 : 1;
}

// The terminal is opened first, because a confined process cannot open one.
const given = launchShape.parse(JSON.parse(process.argv[2] ?? ''));
const launch = given.sharded && given.stdin === null ? { ...given, stdin: replaceStdin() } : given;
if (launch.confinement !== null && confine(launch.confinement)) {
  const again = [
    process.execPath,
    ...process.execArgv,
    import.meta.filename,
    JSON.stringify({ ...launch, confinement: null } satisfies Launch),
  ];
  process.execve?.(process.execPath, again, process.env);
}
process.exit(await serve(launch));
