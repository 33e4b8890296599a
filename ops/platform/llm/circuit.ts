// Stops asking an upstream that keeps failing. Takes the result of each request to the upstream;
// says whether the next request may ask it. After FAILURES_MAX failures in a row the circuit is open
// for OPEN_MS; then one request at a time tries the upstream, and a success closes the circuit. Each
// process has its own circuits.

/** Number of failures in a row that opens the circuit. */
const FAILURES_MAX = 10;
/** Milliseconds for which an open circuit keeps requests away, and between two trials after that. */
const OPEN_MS = 5000;

export class Circuit {
  readonly #now: () => number;
  #failures = 0;
  #openUntil = 0;

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Returns true if a request may ask the upstream now. While the circuit is open, true means a
   * trial: no other request is admitted for OPEN_MS.
   */
  admits(): boolean {
    if (this.#failures < FAILURES_MAX) return true;
    const now = this.#now();
    if (now < this.#openUntil) return false;
    this.#openUntil = now + OPEN_MS;
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures++;
    if (this.#failures >= FAILURES_MAX) this.#openUntil = this.#now() + OPEN_MS;
  }
}
