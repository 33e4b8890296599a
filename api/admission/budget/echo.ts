// Tracks how far this process's knowledge of the others reaches. The NATS server delivers a
// process's own messages back to it behind everything that it had received before them. Takes the
// messages sent and their echoes; returns the time up to which everything has been heard. Reads no
// clock.

/**
 * Maximum number of messages without an echo; without a connection for long, the oldest are
 * dropped.
 */
const IN_TRANSIT_MAX = 10_000;

export class Echo {
  readonly #inTransit: { serial: number; at: number }[] = [];
  #heardUntil = -Infinity;

  /** Time up to which everything that the server had has been heard, on the clock of `sent`. */
  get heardUntil(): number {
    return this.#heardUntil;
  }

  sent(serial: number, at: number): void {
    this.#inTransit.push({ serial, at });
    if (this.#inTransit.length > IN_TRANSIT_MAX) this.#inTransit.shift();
  }

  /** A message has come back. Earlier ones have come back too, or are lost. */
  heard(serial: number): void {
    let ended = 0;
    for (const sent of this.#inTransit) {
      if (sent.serial > serial) break;
      this.#heardUntil = sent.at;
      ended++;
    }
    this.#inTransit.splice(0, ended);
  }
}
