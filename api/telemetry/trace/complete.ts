// Decides whether a trace is complete as the worker does: nothing has arrived for a while.

/** Quiet times, milliseconds. */
export interface CompleteRule {
  /** After which a trace with a root is complete. */
  graceMs: number;
  /** After which a trace without a root is complete. */
  idleMs: number;
}

export interface Arrival {
  /** When the newest span arrived, milliseconds since the epoch. */
  received_ms: number;
  rooted: boolean;
}

export function isComplete({ received_ms, rooted }: Arrival, { graceMs, idleMs }: CompleteRule, now: number): boolean {
  return now - received_ms >= (rooted ? graceMs : idleMs);
}
