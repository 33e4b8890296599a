// The live streams that the tabs of a browser want. The tab that leads opens connections for them;
// a tab that stops renewing its wish, because it was closed or crashed, loses it.

/** A wish is renewed this often, and expires after LEASE_MS without. */
export const RENEW_MS = 4_000;
export const LEASE_MS = 12_000;
/** Distinct streams of all tabs: a screen wants one or two. */
export const STREAMS_MAX = 16;

interface Want {
  streams: readonly string[];
  until_ms: number;
}

export class Wants {
  readonly #tabs = new Map<string, Want>();

  /** Replaces the streams that a tab wants; none removes it. */
  set(tab: string, streams: readonly string[], now_ms: number): void {
    this.#tabs.delete(tab);
    if (streams.length > 0) this.#tabs.set(tab, { streams, until_ms: now_ms + LEASE_MS });
  }

  /** Returns the distinct streams of the tabs that are there, the latest wish first, at most STREAMS_MAX. */
  streams(now_ms: number): string[] {
    for (const [tab, { until_ms }] of this.#tabs) if (until_ms <= now_ms) this.#tabs.delete(tab);
    const latest_first = [...this.#tabs.values()].toReversed().flatMap(({ streams }) => streams);
    return [...new Set(latest_first)].slice(0, STREAMS_MAX);
  }
}
