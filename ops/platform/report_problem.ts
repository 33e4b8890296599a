// The type of the functions by which a module reports what went wrong where it has no caller to throw to.

/**
 * Reports a problem that the reporting module survives.
 * @param problem what went wrong, as a phrase for a log line
 * @param cause the error behind it; undefined where there is none
 */
export type ReportProblem = (problem: string, cause: unknown) => void;
