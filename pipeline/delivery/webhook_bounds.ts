// The bounds of the gate of webhook deliveries (webhook_gate.ts): how many attempts run at a time,
// how many deliveries wait, and for how long.

export const GATE = {
  /**
   * Maximum number of attempts under way: of this worker, of one organization, of all suspect
   * receivers (those that fail or are slow), and of the suspect receivers of one organization.
   */
  in_flight_max: 1500,
  org_in_flight_max: 400,
  suspect_in_flight_max: 500,
  org_suspect_in_flight_max: 150,
  /**
   * Window of one receiver, the attempts that it may have under way: at first, at most, and at most
   * while it is slow.
   */
  window_first: 2,
  window_max: 8,
  window_slow: 2,
  /** A receiver is slow when its attempts take longer than this on average. */
  slow_ms: 1000,
  /**
   * Maximum number of deliveries that wait in the gate for one receiver, their estimated duration
   * in milliseconds, the maximum for all receivers, and their bytes.
   */
  waiting_lane_max: 256,
  waiting_lane_ms_max: 5000,
  waiting_max: 8000,
  waiting_bytes_max: 32 * 1024 * 1024,
  /** Deliveries that have waited for longer go back to the queue. */
  waiting_ms_max: 10_000,
  /** Assumed duration of an attempt while nothing is known of a receiver. */
  guess_ms: 100,
  /**
   * Deliveries wait in the gate for a receiver that is paused for no longer than this; longer
   * pauses put them off.
   */
  pause_ms_max: 1000,
  /**
   * Receivers with this many consecutive failures are paced: together they get so many attempts a
   * second, each receiver with a pause between these two.
   */
  paced_failures: 20,
  paced_tries_per_second: 300,
  pace_ms_min: 20,
  pace_ms_max: 1000,
  /**
   * Longest delay of a delivery that was put off: for receivers that answer, for receivers that
   * fail; and the shortest delay.
   */
  put_off_ms_max: 30_000,
  put_off_failing_ms_max: 900_000,
  put_off_ms_min: 250,
  /** Bounds on the distance at which deliveries to a failing receiver are redelivered. */
  failing_step_ms_min: 5,
  failing_step_ms_max: 1000,
  /** Receivers without a delivery for this long are forgotten. */
  idle_ms_max: 600_000,
} as const;
