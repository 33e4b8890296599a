// The process that is the embedded ClickHouse: one call into libchdb runs the engine's own `clickhouse local` main, which
// opens its real HTTP and TCP ports and serves until the FIFO that it reads as a script is closed.
// Comes in: the engine's arguments as JSON in argv[2] {fifo, args}. Ends with code 0 when it was asked to stop (SIGTERM, or the
// parent gone), else 1: the engine returned by itself and says why on stderr or in its log.
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { DataType, load, open } from 'ffi-rs';
import { z } from 'zod';

/** How long the engine outlives a parent that vanished, so that the other children can land what they hold. */
const ORPHAN_GRACE_MS = 3000;

const require = createRequire(import.meta.url);
const libchdb = z.object({ libchdbPath: z.function({ input: [], output: z.string() }) }).parse(require('chdb/libchdb'));
const { fifo, args } = z.object({ fifo: z.string(), args: z.array(z.string()) }).parse(JSON.parse(process.argv[2] ?? ''));

let stopping = false;
open({ library: 'chdb', path: libchdb.libchdbPath() });
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

function stop(): void {
  if (stopping) return;
  stopping = true;
  writeSync(script, 'SYSTEM STOP LISTEN QUERIES ALL;\n');
  closeSync(script);
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
process.on('disconnect', () => setTimeout(stop, ORPHAN_GRACE_MS));

await engine;
process.exit(stopping ? 0 : 1);
