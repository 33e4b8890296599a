// CPU priority inside the embedded ClickHouse: statements of the pipeline, merges and mutations run
// below the reads of callers. The engine sets it for its threads if it may raise their priority again
// afterwards (CAP_SYS_NICE), and otherwise runs all of them alike, without an error.

/** Lowest priority of a thread. */
const NICE_MAX = 19;

/** Nice values of the pipeline's statements, by their priority. */
export interface StatementNice {
  /** Nice value of most statements; merges and mutations have it too. */
  usual: number;
  /** Nice value of landings that must not wait for the others: the lowest number. */
  ahead: number;
  /** Nice value of landings of an organization that sends much more than others. */
  behind: number;
}

/**
 * Returns the nice values of the pipeline's statements in the engine.
 * @param landingNice nice value of the engine's process; 0 gives 0, which changes nothing
 */
export const statementNice = (landingNice: number): StatementNice => ({
  usual: Math.min(NICE_MAX, 2 * landingNice),
  ahead: landingNice,
  behind: Math.min(NICE_MAX, 3 * landingNice),
});
