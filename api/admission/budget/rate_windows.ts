// What API keys used within the last minute, in memory: requests and tokens, each in an account of
// its own. Takes the uses that this process and the others admit; returns their sum. A use counts
// for 60 s from its slot on, whether or not its events land. Nothing is stored: after the death of
// every API process the windows begin empty.
//
// Bounds: one sum for each slot of a minute and account; accounts of idle keys are dropped.
import { nothingUsed, type Used } from '../../../pipeline/domain/budgets/budget.ts';
import type { AskedUse, Reservation } from '../../../pipeline/domain/budgets/usage_ledger.ts';

export const WINDOW_MS = 60_000;
/** Uses of this many milliseconds leave the window together. */
const SLOT_MS = 100;

interface Window {
  /** Tokens, or requests, by the start of their slot, oldest first. */
  slots: Map<number, number>;
  sum: number;
  /** Slot in which uses that have left the window were last removed: they leave between slots only. */
  swept_in: number;
}

const slotOf = (at: number): number => Math.floor(at / SLOT_MS) * SLOT_MS;

export class RateWindows {
  readonly #windows = new Map<string, Window>();
  readonly #now: () => number;

  /** @param now milliseconds since the epoch */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the use of an amount at this moment, as reservations and messages carry it. */
  useNow(tokens: number): AskedUse {
    return { ...nothingUsed(), tokens, agent_id: '', partition: 0, hour: slotOf(this.#now()) };
  }

  /** Returns what the account used within the last minute, as tokens. */
  used(account: string): Used {
    return { ...nothingUsed(), tokens: this.#current(account)?.sum ?? 0 };
  }

  /** Counts use. Confirming it changes nothing; cancelling it removes it. */
  reserve(account: string, uses: readonly AskedUse[]): Reservation {
    const now = this.#now();
    const window = this.#current(account) ?? { slots: new Map<number, number>(), sum: 0, swept_in: slotOf(now) };
    this.#windows.set(account, window);
    for (const { hour, tokens } of uses) {
      // Other processes repeat a long reservation for longer than it counts.
      if (hasLeft(hour, now)) continue;
      window.slots.set(hour, (window.slots.get(hour) ?? 0) + tokens);
      window.sum += tokens;
    }
    return {
      uses,
      confirm: () => undefined,
      cancel: () => {
        for (const { hour, tokens } of uses) {
          const held = window.slots.get(hour);
          if (held === undefined) continue;
          window.slots.set(hour, held - tokens);
          window.sum -= tokens;
        }
      },
    };
  }

  /** Returns the milliseconds after which the account is below a limit again. */
  freeIn(account: string, limit: number): number {
    const window = this.#current(account);
    let { sum } = window ?? { sum: 0 };
    // Every request asks, and few are above a limit: only those sort the slots.
    const slots = sum < limit ? [] : [...(window?.slots ?? [])].sort(([a], [b]) => a - b);
    for (const [slot, tokens] of slots) {
      if (sum < limit) break;
      sum -= tokens;
      if (sum < limit) return Math.max(1, slot + SLOT_MS + WINDOW_MS - this.#now());
    }
    return limit <= 0 ? WINDOW_MS : 1;
  }

  /** Forgets accounts that used nothing within the last minute. */
  sweep(): void {
    for (const account of this.#windows.keys())
      if (this.#current(account)?.slots.size === 0) this.#windows.delete(account);
  }

  #current(account: string): Window | null {
    const window = this.#windows.get(account);
    if (window === undefined) return null;
    const now = this.#now();
    if (window.swept_in === slotOf(now)) return window;
    window.swept_in = slotOf(now);
    for (const [slot, tokens] of window.slots) {
      // Other processes may announce an older slot late, so the order is only approximate.
      if (!hasLeft(slot, now)) continue;
      window.slots.delete(slot);
      window.sum -= tokens;
    }
    return window;
  }
}

/** Returns true when the uses of a slot count no more. */
const hasLeft = (slot: number, now: number): boolean => slot <= now - WINDOW_MS - SLOT_MS;
