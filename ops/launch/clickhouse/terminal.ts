// Gives this process a terminal as its standard input. The reason: the engine (up to 26.8) ends its
// process when a handler of its native port throws, for example because a client resets the
// connection, unless the engine runs with --interactive and a terminal as its standard input
// (ClickHouse/ClickHouse#115666). Shards reset connections whenever they cancel a query. Remove this
// module once the engine has the fix.
import { constants } from 'node:fs';
import { DataType, load, open } from 'ffi-rs';

/** Reads and writes; the terminal does not become that of this process. */
const OPEN_FLAGS = constants.O_RDWR | constants.O_NOCTTY;

/** Calls a function of libc whose arguments are numbers or texts. Returns -1 on failure. */
function call(name: string, args: readonly (number | string)[]): number {
  return load({
    library: 'libc',
    funcName: name,
    retType: DataType.I32,
    paramsType: args.map((arg) => (typeof arg === 'number' ? DataType.I32 : DataType.String)),
    paramsValue: [...args],
  });
}

/**
 * Replaces the standard input with a new terminal that nobody types into. The descriptors survive
 * execve. Call it before anything reads process.stdin.
 * @returns descriptors: the former standard input, and the other end of the terminal, which ends
 * the input when it closes
 * @throws Error if the system has no terminal to give
 */
export function replaceStdin(): { former: number; controller: number } {
  open({ library: 'libc', path: '' });
  const controller = call('posix_openpt', [OPEN_FLAGS]);
  if (controller < 0 || call('grantpt', [controller]) !== 0 || call('unlockpt', [controller]) !== 0)
    throw new Error('no pseudo-terminal is available');
  const name = load({
    library: 'libc',
    funcName: 'ptsname',
    retType: DataType.String,
    paramsType: [DataType.I32],
    paramsValue: [controller],
  });
  const terminal = call('open', [name, OPEN_FLAGS]);
  const former = call('dup', [0]);
  if (terminal < 0 || former < 0 || call('dup2', [terminal, 0]) !== 0)
    throw new Error('the pseudo-terminal cannot become the standard input');
  return { former, controller };
}
