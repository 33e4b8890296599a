// How far a process's knowledge of the others reaches, by its own messages: the server hands each back to it behind everything
// that it had before it. In: messages that were sent, and their echoes. Out: up to when surely everything was heard. Reads no clock.

/** Messages that have not come back; without a connection for long, the oldest are given up. */
const UNDER_WAY_MAX = 10_000;

export class Echo {
  readonly #underWay: { serial: number; at: number }[] = [];
  #surely = -Infinity;

  /** Up to then everything was heard that the server had; on the clock of `sent`. */
  get surely(): number {
    return this.#surely;
  }

  sent(serial: number, at: number): void {
    this.#underWay.push({ serial, at });
    if (this.#underWay.length > UNDER_WAY_MAX) this.#underWay.shift();
  }

  /** A message has come back, and those before it have or never will. */
  heard(serial: number): void {
    let ended = 0;
    for (const sent of this.#underWay) {
      if (sent.serial > serial) break;
      this.#surely = sent.at;
      ended++;
    }
    this.#underWay.splice(0, ended);
  }
}
