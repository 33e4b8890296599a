// How long the embedded ClickHouse keeps the parts that a merge has replaced. Its launcher
// configures the engine with it, and a worker's part sweeper uses it.

/**
 * Seconds for which replaced parts stay on the disk. A merged part is not synced. Until the
 * operating system has written it, at the next checkpoint or half a minute later, only its sources
 * would survive a loss of power. A ClickHouse server keeps them for eight minutes; the embedded
 * engine, clickhouse-local, deletes them at once unless it is configured.
 */
export const REPLACED_PARTS_KEPT_S = 120;
