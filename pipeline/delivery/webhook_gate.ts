// Decides which webhook deliveries may be sent now. It takes deliveries that are due, by receiver,
// and returns those that go, those that wait here, and those that are put off. Guarantees: a slow,
// dead or hostile receiver holds few connections, its organization a bounded share, and all failing
// receivers together a share that leaves the rest free. Everything that waits is bounded in number,
// bytes and time (webhook_bounds.ts). It does no I/O and reads no clock. The window of a receiver
// starts small, grows with each success, halves with a failure, and is one after a timeout.
import { GATE } from './webhook_bounds.ts';

interface Waiting<T> {
  item: T;
  bytes: number;
  since: number;
}

/** State of one receiver. */
interface Lane<T> {
  org: string;
  in_flight: number;
  window: number;
  /** Consecutive failures. */
  failures: number;
  /** Moving average of the duration of an attempt; 0 before the first. */
  mean_ms: number;
  waiting: Waiting<T>[];
  /** Time before which no attempt begins. */
  resume_at: number;
  /** Time up to which deliveries without room were put off. */
  put_off_to: number;
  used_at: number;
}

export type Offer = { kind: 'go' } | { kind: 'wait' } | { kind: 'later'; ms: number };

export interface TryEnd {
  ok: boolean;
  duration_ms: number;
  /** Pause that the receiver asks for, milliseconds. */
  pause_ms: number;
}

/**
 * Deliveries that the end of an attempt releases: those that go now (counted as under way), and
 * those to put off.
 */
export interface Freed<T> {
  go: T[];
  later: { item: T; ms: number }[];
}

export class Gate<T> {
  readonly #lanes = new Map<string, Lane<T>>();
  readonly #orgs = new Map<string, { in_flight: number; suspects: number }>();
  /**
   * Lanes with room in their own window whose deliveries wait for a shared place, longest first.
   */
  readonly #starved = new Set<string>();
  /** Lanes whose deliveries wait for the end of a short pause. */
  readonly #paused = new Set<string>();
  #in_flight = 0;
  #suspects = 0;
  /** Number of paced lanes. */
  #paced = 0;
  #waiting = 0;
  #waiting_bytes = 0;

  get inFlight(): number {
    return this.#in_flight;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /**
   * True while deliveries wait for the end of a short pause: the caller then calls `resume` every
   * few milliseconds.
   */
  get pausing(): boolean {
    return this.#paused.size > 0;
  }

  /** Returns true when the last attempt of a receiver failed, as far as this worker knows. */
  isFailing(key: string): boolean {
    return (this.#lanes.get(key)?.failures ?? 0) > 0;
  }

  /**
   * Takes a delivery that is due. `go` counts it as under way: the caller reports its end with
   * `end`.
   * @param key key of the receiver
   * @param org its organization
   * @param now milliseconds; all times are of one clock
   */
  offer(key: string, org: string, item: T, bytes: number, now: number): Offer {
    const lane = this.#laneOf(key, org, now);
    if (lane.waiting.length === 0 && this.#open(lane, now)) {
      this.#begin(lane);
      return { kind: 'go' };
    }
    const inAll = this.#waiting < GATE.waiting_max && this.#waiting_bytes + bytes <= GATE.waiting_bytes_max;
    if (!inAll || !this.#hasRoom(lane, now)) return { kind: 'later', ms: this.#putOff(lane, now) };
    lane.waiting.push({ item, bytes, since: now });
    this.#waiting += 1;
    this.#waiting_bytes += bytes;
    if (now < lane.resume_at) this.#paused.add(key);
    else if (lane.in_flight < lane.window) this.#starved.add(key);
    return { kind: 'wait' };
  }

  /** Takes the end of an attempt. */
  end(key: string, result: TryEnd, now: number): Freed<T> {
    const freed: Freed<T> = { go: [], later: [] };
    const lane = this.#lanes.get(key);
    if (lane === undefined) return freed;
    this.#count(lane, -1);
    this.#learn(lane, result, now);
    if (this.#isStuck(lane) || now + GATE.pause_ms_max < lane.resume_at) {
      for (const item of this.#takeAll(key, lane)) freed.later.push({ item, ms: this.#putOff(lane, now) });
    } else if (now < lane.resume_at) {
      if (lane.waiting.length > 0) this.#paused.add(key);
    } else {
      this.#start(key, lane, now, freed);
    }
    this.#startStarved(now, freed);
    return freed;
  }

  /** Starts deliveries whose pause has ended. */
  resume(now: number): Freed<T> {
    const freed: Freed<T> = { go: [], later: [] };
    for (const key of [...this.#paused]) {
      const lane = this.#lanes.get(key);
      if (lane !== undefined && now < lane.resume_at) continue;
      this.#paused.delete(key);
      if (lane !== undefined) this.#start(key, lane, now, freed);
    }
    return freed;
  }

  /**
   * Puts off deliveries that have waited for too long, and forgets idle receivers. The caller runs
   * it about once a second.
   */
  sweep(now: number): Freed<T> {
    const freed: Freed<T> = { go: [], later: [] };
    for (const [key, lane] of this.#lanes) {
      while ((lane.waiting[0]?.since ?? now) < now - GATE.waiting_ms_max) {
        for (const { item } of this.#take(lane)) freed.later.push({ item, ms: this.#putOff(lane, now) });
      }
      if (lane.waiting.length === 0) {
        this.#starved.delete(key);
        this.#paused.delete(key);
      }
      if (lane.in_flight > 0 || lane.waiting.length > 0 || now - lane.used_at <= GATE.idle_ms_max) continue;
      if (lane.failures >= GATE.paced_failures) this.#paced -= 1;
      this.#lanes.delete(key);
    }
    this.#startStarved(now, freed);
    return freed;
  }

  /** Removes and returns all waiting deliveries, for a worker that stops. */
  drain(): T[] {
    return [...this.#lanes].flatMap(([key, lane]) => this.#takeAll(key, lane));
  }

  #laneOf(key: string, org: string, now: number): Lane<T> {
    let lane = this.#lanes.get(key);
    if (lane === undefined) {
      lane = {
        org,
        in_flight: 0,
        window: GATE.window_first,
        failures: 0,
        mean_ms: 0,
        waiting: [],
        resume_at: 0,
        put_off_to: 0,
        used_at: now,
      };
      this.#lanes.set(key, lane);
    }
    lane.used_at = now;
    return lane;
  }

  #isSuspect(lane: Lane<T>): boolean {
    return lane.failures > 0 || lane.mean_ms > GATE.slow_ms;
  }

  /** Returns the pause between two attempts of a receiver, milliseconds. */
  #paceOf(lane: Lane<T>): number {
    if (lane.failures < GATE.paced_failures) return 0;
    return Math.min(GATE.pace_ms_max, Math.max(GATE.pace_ms_min, (1000 * this.#paced) / GATE.paced_tries_per_second));
  }

  /** Returns true for a receiver that fails slowly: no delivery waits here for it. */
  #isStuck(lane: Lane<T>): boolean {
    return lane.failures > 0 && lane.mean_ms > GATE.slow_ms;
  }

  /** Returns true when one more delivery may wait for this receiver: its turn comes soon enough. */
  #hasRoom(lane: Lane<T>, now: number): boolean {
    if (this.#isStuck(lane) || now + GATE.pause_ms_max < lane.resume_at || lane.waiting.length >= GATE.waiting_lane_max)
      return false;
    const tryMs = lane.mean_ms === 0 ? GATE.guess_ms : Math.max(1, lane.mean_ms) + this.#paceOf(lane);
    return ((lane.waiting.length + 1) * tryMs) / lane.window <= GATE.waiting_lane_ms_max;
  }

  /** Returns true when an attempt may begin now. */
  #open(lane: Lane<T>, now: number): boolean {
    if (lane.in_flight >= lane.window || now < lane.resume_at || this.#in_flight >= GATE.in_flight_max) return false;
    const org = this.#orgs.get(lane.org);
    if (org !== undefined && org.in_flight >= GATE.org_in_flight_max) return false;
    if (!this.#isSuspect(lane)) return true;
    return this.#suspects < GATE.suspect_in_flight_max && (org?.suspects ?? 0) < GATE.org_suspect_in_flight_max;
  }

  #begin(lane: Lane<T>): void {
    this.#count(lane, 1);
  }

  #count(lane: Lane<T>, by: 1 | -1): void {
    const org = this.#orgs.get(lane.org) ?? { in_flight: 0, suspects: 0 };
    lane.in_flight += by;
    this.#in_flight += by;
    org.in_flight += by;
    if (this.#isSuspect(lane)) {
      this.#suspects += by;
      org.suspects += by;
    }
    if (org.in_flight === 0) this.#orgs.delete(lane.org);
    else this.#orgs.set(lane.org, org);
  }

  /**
   * Updates a receiver after an attempt. When it becomes suspect, or ceases to be, its attempts
   * under way move between the counts.
   */
  #learn(lane: Lane<T>, { ok, duration_ms, pause_ms }: TryEnd, now: number): void {
    const was = this.#isSuspect(lane);
    const wasPaced = lane.failures >= GATE.paced_failures;
    lane.used_at = now;
    lane.mean_ms = lane.mean_ms === 0 ? duration_ms : lane.mean_ms * 0.8 + duration_ms * 0.2;
    if (ok) {
      if (lane.failures > 0) lane.put_off_to = now;
      lane.failures = 0;
      lane.window = Math.min(lane.mean_ms > GATE.slow_ms ? GATE.window_slow : GATE.window_max, lane.window + 1);
    } else {
      lane.failures += 1;
      lane.window = duration_ms > GATE.slow_ms ? 1 : Math.max(1, Math.floor(lane.window / 2));
    }
    this.#paced += Number(lane.failures >= GATE.paced_failures) - Number(wasPaced);
    lane.resume_at = Math.max(lane.resume_at, now + Math.max(this.#paceOf(lane), pause_ms));
    const is = this.#isSuspect(lane);
    if (was === is) return;
    const moved = is ? lane.in_flight : -lane.in_flight;
    const org = this.#orgs.get(lane.org);
    this.#suspects += moved;
    if (org !== undefined) org.suspects += moved;
  }

  /**
   * Returns the milliseconds until a delivery that was put off is redelivered: each after the one
   * before, at about the receiver's own pace.
   */
  #putOff(lane: Lane<T>, now: number): number {
    const failing = lane.failures > 0;
    const step = failing
      ? Math.min(GATE.failing_step_ms_max, Math.max(GATE.failing_step_ms_min, lane.mean_ms, this.#paceOf(lane)))
      : Math.max(1, (0.7 * Math.max(lane.mean_ms, 5)) / lane.window);
    const most = failing ? GATE.put_off_failing_ms_max : GATE.put_off_ms_max;
    lane.put_off_to = Math.min(
      Math.max(lane.put_off_to, lane.resume_at, now) + step,
      Math.max(lane.resume_at, now) + most,
    );
    return Math.max(GATE.put_off_ms_min, Math.ceil(lane.put_off_to - now));
  }

  #start(key: string, lane: Lane<T>, now: number, freed: Freed<T>): void {
    while (lane.waiting.length > 0 && this.#open(lane, now)) {
      freed.go.push(...this.#take(lane).map(({ item }) => item));
      this.#begin(lane);
    }
    if (lane.waiting.length === 0 || lane.in_flight >= lane.window) this.#starved.delete(key);
    else this.#starved.add(key);
  }

  /** Gives free places to starved lanes, in turns. */
  #startStarved(now: number, freed: Freed<T>): void {
    for (const key of [...this.#starved.keys().take(STARVED_LOOKS_MAX)]) {
      if (this.#in_flight >= GATE.in_flight_max) return;
      const lane = this.#lanes.get(key);
      this.#starved.delete(key);
      if (lane !== undefined) this.#start(key, lane, now, freed);
    }
  }

  #take(lane: Lane<T>): Waiting<T>[] {
    const taken = lane.waiting.splice(0, 1);
    for (const { bytes } of taken) {
      this.#waiting -= 1;
      this.#waiting_bytes -= bytes;
    }
    return taken;
  }

  #takeAll(key: string, lane: Lane<T>): T[] {
    const items: T[] = [];
    while (lane.waiting.length > 0) items.push(...this.#take(lane).map(({ item }) => item));
    this.#starved.delete(key);
    this.#paused.delete(key);
    return items;
  }
}

/** Maximum number of starved lanes that the end of one attempt examines. */
const STARVED_LOOKS_MAX = 16;
