// Heartbeats of pipeline workers: plain NATS messages, kept by nobody, heard by every process that listens.
// They are not stored on purpose: two writes a second for each worker would be most of what an idle service writes to disk,
// and a heartbeat that is older than two seconds says nothing.
import type { NatsConnection } from '@nats-io/transport-node';
import { type Heartbeat, HEARTBEAT_SUBJECT, heartbeatShape } from '../../schemas/signals/heartbeats.ts';

/** Sends one. While the connection is down it is lost, as it should be. */
export function sendBeat(nc: NatsConnection, beat: Heartbeat): void {
  if (!nc.isClosed()) nc.publish(HEARTBEAT_SUBJECT, JSON.stringify(beat));
}

interface Heard {
  /** On this process's monotonic clock, milliseconds. */
  at: number;
  metrics_url: string;
  up: boolean;
}

/** Who was heard, and when. Survives reconnects. */
export class HeartbeatListener {
  readonly #heard = new Map<string, Heard>();
  readonly #stop: () => void;

  constructor(nc: NatsConnection, now: () => number = () => performance.now()) {
    const subscription = nc.subscribe(HEARTBEAT_SUBJECT, {
      callback: (error, message) => {
        const beat = error === null ? parseBeat(message.string()) : null;
        if (beat === null) return;
        if (beat.ended) this.#heard.delete(beat.worker_id);
        else this.#heard.set(beat.worker_id, { at: now(), metrics_url: beat.metrics_url, up: beat.up ?? true });
      },
    });
    this.#stop = () => {
      subscription.unsubscribe();
    };
  }

  /** Workers heard within the time, by id in order. */
  live(now: number, withinMs: number): string[] {
    return [...this.#heard]
      .filter(([, { at }]) => now - at <= withinMs)
      .map(([worker]) => worker)
      .sort();
  }

  /** When a worker was heard last; undefined when never. */
  heardAt(worker: string): number | undefined {
    return this.#heard.get(worker)?.at;
  }

  /** Whether a worker that was heard takes calls to run jobs. */
  isUp(worker: string): boolean {
    return this.#heard.get(worker)?.up ?? false;
  }

  metricsUrl(worker: string): string | undefined {
    return this.#heard.get(worker)?.metrics_url;
  }

  /** Counts everybody as heard just now: nothing could be heard for a while, so silence says nothing. */
  excuseAll(now: number): void {
    for (const heard of this.#heard.values()) heard.at = now;
  }

  /** Drops workers that were silent for longer. */
  forget(now: number, silentMs: number): void {
    for (const [worker, { at }] of this.#heard) if (now - at > silentMs) this.#heard.delete(worker);
  }

  stop(): void {
    this.#stop();
  }
}

function parseBeat(text: string): Heartbeat | null {
  try {
    return heartbeatShape.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
