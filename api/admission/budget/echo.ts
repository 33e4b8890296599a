// How far a process's knowledge of the others reaches, by its own messages: the server hands each back to it behind everything
// that it had before it. In: messages that were sent, and their echoes. Out: up to when surely everything was heard. Reads no clock.

/** Messages that have not come back; without a connection for long, the oldest are given up. */
const IN_TRANSIT_MAX = 10_000;

export class Echo {
  readonly #inTransit: { serial: number; at: number }[] = [];
  #heardUntil = -Infinity;

  /** Up to then everything was heard that the server had; on the clock of `sent`. */
  get heardUntil(): number {
    return this.#heardUntil;
  }

  sent(serial: number, at: number): void {
    this.#inTransit.push({ serial, at });
    if (this.#inTransit.length > IN_TRANSIT_MAX) this.#inTransit.shift();
  }

  /** A message has come back, and those before it have or never will. */
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
