// Bounds of the data plane of one worker: how much it reads, buffers, lands and publishes at a
// time.

export const LIMITS = {
  /** Maximum bytes of log messages in one landing. One is prepared beside unsettled_bytes_max. */
  batch_bytes_max: 8 * 1024 * 1024,
  /**
   * Maximum bytes of log messages in a batch beside an organization that sends much, so that a batch is
   * prepared soon (landing/landing_lanes.ts).
   */
  lane_batch_bytes_max: 1024 * 1024,
  /**
   * Bytes of log messages of batches whose rows, of either lane, have not landed. With as many or more
   * the worker waits before its next landing.
   */
  unsettled_bytes_max: 24 * 1024 * 1024,
  /** Time between the starts of two landings while the store is quick (landing/landing_pace.ts). */
  landing_interval_ms: 100,
  /** The same while landings take long, unless a whole batch waits. */
  landing_interval_ms_max: 400,
  /**
   * A worker that begins to read further partitions waits for their messages for this long before its
   * next landing. Otherwise that landing has the first few messages only, and the others wait for it.
   */
  gather_ms: 150,
  /**
   * Interval of checkpoints. A new owner replays at most about this much of the log after a crash.
   */
  checkpoint_interval_ms: 1000,
  /** Bytes of messages after which the stages yield to timers, such as heartbeats. */
  slice_bytes: 512 * 1024,
  /**
   * Maximum event ids that the dedupe windows of a worker hold exactly, at 13 to 27 bytes each.
   * Older ids move to Bloom filters.
   */
  dedupe_ids_exact_max: 24_000_000,
  /**
   * Maximum ids of counted model calls in memory, at about 500 bytes each. Those of traces that were
   * quiet longest are read back from the store when another record of the trace arrives.
   */
  call_ids_max: 100_000,
  open_traces_max: 200_000,
  done_traces_max: 20_000,
  /**
   * Maximum bytes of open traces' contents that judges will see. The worker reads the rest back
   * from the store when the trace is complete.
   */
  judged_bytes_max: 64 * 1024 * 1024,
  /**
   * Maximum traces with judges, taken over from a former owner, that a worker completes in one batch
   * if it owns all partitions. Their contents are read from the store, which delays the batch, so the
   * others follow in the next ones.
   */
  judged_from_store_max: 200,
  /** Maximum tasks for LLM judges that are being published at a time. */
  judging_publishes_max: 64,
  /**
   * Maximum estimated bytes of the tail buffer of a worker, and of one buffered trace. A setting
   * bounds the number of traces.
   */
  tail_bytes_max: 256 * 1024 * 1024,
  tail_trace_bytes_max: 16 * 1024 * 1024,
  /**
   * Maximum events and bytes of the log that the worker reads after the oldest buffered event
   * before it decides that event's trace. A new owner replays this much after a crash.
   */
  tail_replay_events_max: 500_000,
  tail_replay_bytes_max: 512 * 1024 * 1024,
  /** Maximum age of a buffered trace, in multiples of the quiet time that completes a trace. */
  tail_idles_max: 4,
  /**
   * Maximum bytes of one insert. Many buffered traces may be decided at once, so their rows may
   * need several inserts.
   */
  insert_bytes_max: 32 * 1024 * 1024,
  /**
   * Maximum platform events in one message, and their bytes. Most events take some hundred bytes. A
   * trace.completed with the scores of 200 judges whose names are as long as allowed and escaped
   * takes 250 KB; with the scores of all 2,000 judges that an organization may create, 2.5 MB. Each
   * fits a message alone.
   */
  service_events_batch_max: 2000,
  service_events_bytes_max: 1024 * 1024,
  /** The janitor keeps consumed messages for replays until the log is filled to this fraction. */
  log_keep_fraction: 0.5,
} as const;
