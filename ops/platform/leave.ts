// How a process of the service ends itself.
// `process.exit` joins the threads that compile, and one of those may be waiting for a garbage collection of the thread that joins it: then
// the process hangs for ever (https://github.com/nodejs/node/issues/54918, seen with Node 26 after seconds of full load).

/** A thread that is idle serves what those that compile ask of it, and gives them nothing new. */
const IDLE_MS = 50;

/** Ends this process with a code, once its work is done and closed: after a moment of doing nothing, in which nothing is left to compile. */
export function leave(code: number): void {
  setTimeout(() => process.exit(code), IDLE_MS);
}

/**
 * Ends this process here and now, as if it were killed: not one more write, and nothing that could wait.
 * For a process that must not go on; whoever keeps it sees an end by SIGKILL, and starts it again.
 */
export function die(): void {
  process.kill(process.pid, 'SIGKILL');
  // The first process of a container outlives a SIGKILL of its own (pid_namespaces(7)), but not a fault.
  if (process.pid === 1) process.abort();
}
