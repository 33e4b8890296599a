// CPU priority inside the embedded ClickHouse: statements of the pipeline, merges and mutations run
// below the reads of callers. The engine sets it for its threads if it may raise their priority again
// afterwards (CAP_SYS_NICE), and otherwise runs all of them alike, without an error.

/** Lowest priority of a thread. */
const NICE_MAX = 19;

/**
 * Returns the nice value of the pipeline's statements, merges and mutations in the engine.
 * @param landingNice nice value of the engine's process; 0 gives 0, which changes nothing
 */
export const statementNice = (landingNice: number): number => Math.min(NICE_MAX, 2 * landingNice);
