// Bounds of the gate through which deliveries go (webhook_gate.ts), in one place: how many at a time, how many wait, how long.

export const GATE = {
  /** Tries under way at a time: of this worker, of one org, of receivers that fail or are slow, and of those of one org. */
  in_flight_max: 1500,
  org_in_flight_max: 400,
  suspect_in_flight_max: 500,
  org_suspect_in_flight_max: 150,
  /** Of one receiver: before anything is known of it, at best, and while it is slow. */
  window_first: 2,
  window_max: 8,
  window_slow: 2,
  /** Slow is a receiver that takes longer than this on the whole. */
  slow_ms: 1000,
  /** Deliveries that wait here: for one receiver, also by the time that they will take (milliseconds); in all; their bytes. */
  waiting_lane_max: 256,
  waiting_lane_ms_max: 5000,
  waiting_max: 8000,
  waiting_bytes_max: 32 * 1024 * 1024,
  /** What waits longer is given back, before the queue would give it to another worker. */
  waiting_ms_max: 10_000,
  /** What a try is taken to last before anything is known of a receiver. */
  guess_ms: 100,
  /** While a receiver shall be left alone for no longer than this, deliveries wait here for it. */
  pause_ms_max: 1000,
  /** Receivers that have failed this often in a row share so many tries a second, each with a pause within these between two. */
  paced_failures: 20,
  paced_tries_per_second: 300,
  pace_ms_min: 20,
  pace_ms_max: 1000,
  /** Longest time for which a delivery that found no room is put off: of receivers that answer, and of those that fail. */
  put_off_ms_max: 30_000,
  put_off_failing_ms_max: 900_000,
  put_off_ms_min: 250,
  /** Deliveries to a failing receiver come again at the distance at which it is tried, within these. */
  failing_step_ms_min: 5,
  failing_step_ms_max: 1000,
  /** Receivers that nothing was heard of for this long are forgotten. */
  idle_ms_max: 600_000,
} as const;
