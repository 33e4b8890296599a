// Decides when the next landing begins. A landing costs ClickHouse about 30 ms of CPU however few
// its rows, so under load fewer, larger landings leave more of the machine for events; an idle
// worker lands at the shortest interval, so that events are fresh.
import { LIMITS } from '../limits.ts';

/** The pause between two landings is this many times the duration of the last one, within bounds. */
const PAUSE_FACTOR = 2;

/** Times in milliseconds. */
interface LandingPace {
  /** Time since the last landing began. */
  since_ms: number;
  /** Duration of the last landing. */
  took_ms: number;
  /** Bytes of messages that were read and wait. */
  buffered_bytes: number;
  /** Bytes of a whole batch; LIMITS.batch_bytes_max if absent. */
  batch_bytes?: number;
}

/** Returns the time until the next landing may begin, in milliseconds; 0 if it may begin now. */
export function landingDelay({ since_ms, took_ms, buffered_bytes, batch_bytes }: LandingPace): number {
  const { landing_interval_ms, landing_interval_ms_max, batch_bytes_max } = LIMITS;
  const isFull = buffered_bytes >= (batch_bytes ?? batch_bytes_max);
  const paused = Math.min(landing_interval_ms_max, Math.max(landing_interval_ms, PAUSE_FACTOR * took_ms));
  return Math.max(0, (isFull ? landing_interval_ms : paused) - since_ms);
}
