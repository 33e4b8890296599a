// The process that is the embedded ClickHouse: one call into libchdb runs the engine's own `clickhouse local` main, which
// opens its real HTTP and TCP ports and serves until the FIFO that it reads as a script is closed.
// Comes in: argv[2], JSON {fifo, args, confinement}. First it confines itself to its files, where the system can, and becomes itself
// again, so that every thread is confined. Ends with code 0 when it was asked to stop (SIGTERM, or stdin at its end: the parent
// is gone), else 1: the engine returned by itself and says why in its log.
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { DataType, load, open } from 'ffi-rs';
import { libchdbPath } from 'chdb/libchdb';
import { z } from 'zod';
import { confine } from './confine.ts';

/** How long the engine outlives a parent that vanished, so that the other children can land what they hold. */
const ORPHAN_GRACE_MS = 3000;

const paths = z.array(z.string());
const launchShape = z.object({
  fifo: z.string(),
  args: paths,
  /** Null: done already. */
  confinement: z.object({ readable: paths, executable: paths, writable: paths }).nullable(),
});

/** What argv[2] holds. */
export type Launch = z.infer<typeof launchShape>;

async function serve({ fifo, args }: Launch): Promise<number> {
  open({ library: 'chdb', path: libchdbPath() });
  const argv = ['clickhouse', ...args];
  // Runs in a thread of libuv's pool for the life of the process; the result must not be read (it may be freed already).
  const engine = load({
    library: 'chdb',
    funcName: 'chdb_query_cmdline',
    retType: DataType.External,
    paramsType: [DataType.I32, DataType.StringArray],
    paramsValue: [argv.length, argv],
    runInNewThread: true,
  });
  const script = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
  const asked = new AbortController();
  const stop = (): void => {
    if (asked.signal.aborted) return;
    asked.abort();
    writeSync(script, 'SYSTEM STOP LISTEN QUERIES ALL;\n');
    closeSync(script);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.stdin.on('close', () => setTimeout(stop, ORPHAN_GRACE_MS)).resume();
  await engine;
  return asked.signal.aborted ? 0 : 1;
}

const launch = launchShape.parse(JSON.parse(process.argv[2] ?? ''));
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
