// Notices a caller that does not read its answer. Such a caller would hold a place among the queries until its time is up.
import type { ServerResponse } from 'node:http';

/**
 * A caller that takes less than STALLED_BYTES_MIN between two looks, while more waits to be sent, is cut off: within ten seconds, half of the
 * time that a query waits for a place (WAIT_MS_MAX in running.ts).
 */
const LOOK_EVERY_MS = 5000;
const STALLED_BYTES_MIN = 32_768;

export interface StallWatch {
  /** Aborts when the caller stalls. */
  signal: AbortSignal;
  stop: () => void;
}

/** Watches the answer until stop() is called. @param ms between two looks, milliseconds */
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

/** Bytes that the operating system has taken for the caller, over this connection. */
function takenOf({ socket }: ServerResponse): number {
  return socket === null ? 0 : socket.bytesWritten - socket.writableLength;
}
