// Bounds of the way from the ingest log to the store, for one worker.

export const LIMITS = {
  /** Bytes of log messages that one landing takes; two landings are in memory at a time. */
  batch_bytes_max: 8 * 1024 * 1024,
  /** A landing begins at most this often: fewer, larger parts. */
  landing_interval_ms: 100,
  /** How often the place in the log is written down; after a crash at most this much is read again. */
  checkpoint_interval_ms: 1000,
  /** Stages yield to timers (heartbeats) after this many bytes of messages. */
  slice_bytes: 512 * 1024,
  /** Event ids that the dedupe windows of a worker hold exactly, 13 to 27 bytes each; older ones become a filter. */
  dedupe_ids_exact_max: 24_000_000,
  open_traces_max: 200_000,
  done_traces_max: 20_000,
  /** What judges see of open traces, in memory; beyond it is read back from the store when the trace is complete. */
  judged_bytes_max: 64 * 1024 * 1024,
  /** Tasks for LLM judges that are on their way to JetStream at a time. */
  judging_publishes_max: 64,
  /** Estimated memory of the traces that tail sampling holds, and of one of them; their number is a setting. */
  tail_bytes_max: 256 * 1024 * 1024,
  tail_trace_bytes_max: 16 * 1024 * 1024,
  /** How much of the log may be read after the oldest event held, before its trace is decided: it is read again after a crash. */
  tail_replay_events_max: 500_000,
  tail_replay_bytes_max: 512 * 1024 * 1024,
  /** A trace that never rests is held for this many times the quiet time that completes one. */
  tail_idles_max: 4,
  /** Bytes of one insert: what many held traces become at once goes in pieces. */
  insert_bytes_max: 32 * 1024 * 1024,
  /**
   * Platform events of one message, and their bytes. An event is some hundred bytes; a trace.completed with the scores of 200 judges of the
   * longest names, each escaped, 250 KB; with those of all 2,000 judges that an org can have made, 2.5 MB. So each fits a message alone.
   */
  service_events_batch_max: 2000,
  service_events_bytes_max: 1024 * 1024,
  /** The janitor keeps consumed messages for re-reading until the log is this full. */
  log_keep_fraction: 0.5,
} as const;
