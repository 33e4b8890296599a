// The load: lanes that send stamped bodies as fast as they are answered, or at a given pace.
import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Body } from './bodies.ts';
import { Lane, requestHead, type LaneTarget } from './lane.ts';

export interface LoadOptions {
  target: LaneTarget;
  path: string;
  bodies: readonly Body[];
  /** Events in a body. */
  bodyEvents: number;
  lanes: number;
  /** Events a second; Infinity: as fast as they are answered. */
  rate: number;
}

const RECONNECT_MS = 50;
/** Pause after a rejection (429, 502), as an SDK would. */
const REFUSED_REST_MS = 100;

/**
 * Stamps of two runs against one service should not meet, so each process begins at a random
 * number.
 */
let nextStamp = randomInt(2 ** 39);

/** A load that runs until it is stopped. Its counts may be read at any time. */
export class Load {
  readonly #options: LoadOptions;
  readonly latencies_ms: number[] = [];
  acknowledged = 0;
  refused = 0;
  errors = 0;
  /** Counts of answers other than 200, by HTTP status. */
  readonly statuses = new Map<number, number>();
  #stopped = false;
  #lanes: Promise<void>[] = [];
  #begun = 0;
  #taken = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  start(): void {
    const { lanes, bodies } = this.#options;
    this.#begun = performance.now();
    this.#lanes = Array.from({ length: lanes }, (_, index) =>
      this.#run(bodies.filter((__, body) => body % lanes === index)),
    );
  }

  /** Ends after the requests in flight. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#lanes);
  }

  /** Returns the milliseconds until the next body is due, and takes it when that is 0. */
  #due(): number {
    const { rate, bodyEvents } = this.#options;
    if (rate === Infinity) return 0;
    const wait = (this.#taken * bodyEvents * 1000) / rate - (performance.now() - this.#begun);
    if (wait > 0) return wait;
    this.#taken += 1;
    return 0;
  }

  async #run(bodies: readonly Body[]): Promise<void> {
    const { target, path } = this.#options;
    const heads = bodies.map((body) => requestHead(target, 'POST', path, body.bytes.length));
    let lane = new Lane(target);
    for (let turn = 0; !this.#stopped;) {
      const wait = this.#due();
      if (wait > 0) {
        await pause(Math.min(wait, 50));
        continue;
      }
      const body = bodies[turn % bodies.length];
      const head = heads[turn % bodies.length];
      turn += 1;
      if (body === undefined || head === undefined) return;
      body.stamp(nextStamp++);
      if (!lane.usable) lane = new Lane(target);
      await this.#send(lane, head, body);
    }
    lane.close();
  }

  async #send(lane: Lane, head: Buffer, body: Body): Promise<void> {
    const began = performance.now();
    try {
      const status = await lane.send(head, body.bytes);
      if (status === 200) {
        this.acknowledged += this.#options.bodyEvents;
        this.latencies_ms.push(performance.now() - began);
        return;
      }
      this.refused += 1;
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      await pause(REFUSED_REST_MS);
    } catch {
      this.errors += 1;
      lane.close();
      await pause(RECONNECT_MS);
    }
  }
}
