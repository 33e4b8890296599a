// Ends a process of the service. `process.exit` joins the compiler threads, and one of those may
// wait for a garbage collection of the thread that joins it; the process then hangs for ever
// (https://github.com/nodejs/node/issues/54918, seen with Node 26 after seconds of full load).

/**
 * Idle time before the exit: an idle thread serves the requests of the compiler threads and gives
 * them no new work.
 */
const IDLE_MS = 50;

/**
 * Ends this process with a code, once its work is done and closed. It idles for a moment first, so
 * that nothing is left to compile.
 */
export function leave(code: number): void {
  setTimeout(() => process.exit(code), IDLE_MS);
}

/**
 * Ends this process at once, as if it were killed, without another write or wait. It is for a
 * process that must not go on; its supervisor sees an end by SIGKILL and starts it again.
 */
export function die(): void {
  process.kill(process.pid, 'SIGKILL');
  // The first process of a container survives its own SIGKILL (pid_namespaces(7)), but not a fault.
  if (process.pid === 1) process.abort();
}
