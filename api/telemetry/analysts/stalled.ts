// Detects a caller that does not read its answer, which would keep a slot until the time of its
// query is up.
import type { ServerResponse } from 'node:http';

/**
 * Interval of the checks. A caller that takes less than STALLED_BYTES_MIN between two checks while
 * more data waits to be sent is cut off: within ten seconds, half of the time that a query waits
 * for a slot (WAIT_MS_MAX in running.ts).
 */
const LOOK_EVERY_MS = 5000;
const STALLED_BYTES_MIN = 32_768;

export interface StallWatch {
  /** Aborts when the caller stalls. */
  signal: AbortSignal;
  stop: () => void;
}

/** Watches a response until stop() is called. @param ms interval of the checks, milliseconds */
export function watchForStall(res: ServerResponse, ms = LOOK_EVERY_MS): StallWatch {
  const stalled = new AbortController();
  let before = takenOf(res);
  const timer = setInterval(() => {
    const taken = takenOf(res);
    if (res.writableNeedDrain && taken - before < STALLED_BYTES_MIN)
      stalled.abort(new Error('the caller does not read the answer'));
    before = taken;
  }, ms);
  return {
    signal: stalled.signal,
    stop: () => {
      clearInterval(timer);
    },
  };
}

/** Returns the bytes that the operating system has accepted for the caller on this connection. */
function takenOf({ socket }: ServerResponse): number {
  return socket === null ? 0 : socket.bytesWritten - socket.writableLength;
}
