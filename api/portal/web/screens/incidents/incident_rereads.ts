// Reads incidents again after the live stream reported changes, until the list shows them. The stream
// reports a change a moment before the list does: within a second, within a minute under load. One
// loop follows all changes of an organization. A newer change of an incident replaces the older one,
// and each change is followed for a bounded number of reads.
import { agrees, type Changed } from './open_incidents.ts';

/** Reads that wait for one change: about 70 seconds with the pauses between them. */
const TRIES_MAX = 20;
const PAUSE_MS = 250;
const PAUSE_MS_MAX = 4_000;

export interface IncidentReads {
  /** Reads everything about incidents that is shown again. */
  readAll(): Promise<void>;
  /** Returns the newest open incidents as they were last read; undefined if they are not shown. */
  open(): Parameters<typeof agrees>[0] | undefined;
}

export class IncidentRereads {
  readonly #reads: IncidentReads;
  /** Changes that the list has not shown yet, by incident. */
  readonly #waiting = new Map<string, { changed: Changed; tries: number }>();
  /** Number of the newest loop; every other one ends. */
  #loop = 0;

  constructor(reads: IncidentReads) {
    this.#reads = reads;
  }

  /**
   * Reads at once, and again until the list agrees. Ends the loop of an earlier change, whose change
   * this loop follows as well.
   * @param changed the new state of an incident; null if changes may have been missed
   */
  async follow(changed: Changed | null): Promise<void> {
    this.stop(changed === null);
    if (changed === null) return this.#reads.readAll();
    this.#waiting.set(changed.incident_id, { changed, tries: 0 });
    const loop = this.#loop;
    for (let pause_ms = PAUSE_MS; ; pause_ms = Math.min(PAUSE_MS_MAX, 2 * pause_ms)) {
      await this.#reads.readAll();
      if (this.#loop !== loop) return;
      const open = this.#reads.open();
      if (open === undefined) {
        this.stop();
        return;
      }
      const hasShown = this.#drop(open);
      if (this.#waiting.size === 0) {
        // The other lists were read beside this one, perhaps a moment before it: they are read once more.
        return hasShown ? this.#reads.readAll() : undefined;
      }
      await new Promise((resolve) => setTimeout(resolve, pause_ms));
      if (this.#loop !== loop) return;
    }
  }

  /** Ends the loop. @param forget also forgets the changes that it follows */
  stop(forget = true): void {
    this.#loop += 1;
    if (forget) this.#waiting.clear();
  }

  /** Forgets changes that the list shows, or that have had their reads. @returns true if it shows any */
  #drop(open: Parameters<typeof agrees>[0]): boolean {
    let hasShown = false;
    for (const [incident_id, waiting] of this.#waiting) {
      waiting.tries += 1;
      const isShown = agrees(open, waiting.changed);
      hasShown ||= isShown;
      if (isShown || waiting.tries === TRIES_MAX) this.#waiting.delete(incident_id);
    }
    return hasShown;
  }
}
