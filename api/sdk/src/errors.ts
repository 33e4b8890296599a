// Errors that callers of this package see.

/** An error of the service or of the way to it. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError';
  /** Status of the answer; null when there was none. */
  readonly status: number | null;
  /** Code of the service's error, such as `not_found`; null when there was none. */
  readonly code: string | null;

  constructor(message: string, answer: { status?: number; code?: string; cause?: unknown } = {}) {
    super(message, { cause: answer.cause });
    this.status = answer.status ?? null;
    this.code = answer.code ?? null;
  }
}

/** A report on standard error at most this often. */
const REPORT_EVERY_MS = 60_000;

/** Returns a function that writes errors to standard error, one line a minute. */
export function reportOnStderr(): (error: MillraceError) => void {
  let [nextAt, untold] = [0, 0];
  return (error) => {
    const now = Date.now();
    if (now < nextAt) {
      untold += 1;
      return;
    }
    process.stderr.write(`millrace: ${error.message}${untold === 0 ? '' : ` (and ${untold} errors before)`}\n`);
    nextAt = now + REPORT_EVERY_MS;
    untold = 0;
  };
}
