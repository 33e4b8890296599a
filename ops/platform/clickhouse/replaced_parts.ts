// How long the embedded ClickHouse keeps parts that a merge has replaced: its launcher sets it, and the sweeper of a worker goes by it.

/**
 * Seconds that replaced parts stay on the disk. A merged part is not synced: until the operating system has written it, at the next
 * checkpoint or half a minute later, its sources are what would survive a loss of power. A ClickHouse server keeps them for eight
 * minutes; the embedded engine, which is clickhouse-local, for no time unless it is configured.
 */
export const REPLACED_PARTS_KEPT_S = 120;
