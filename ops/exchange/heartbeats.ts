// Heartbeats of pipeline workers: plain NATS messages that nobody stores and every listening
// process hears. Storing two of them per second and worker would be most of what an idle service
// writes to the disk, and a heartbeat older than two seconds is worthless.
import { type NatsConnection, RequestError } from '@nats-io/transport-node';
import {
  type Heartbeat,
  HEARTBEAT_SUBJECT,
  heartbeatShape,
  presenceSubject,
} from '../../schemas/signals/heartbeats.ts';

/** Sends a heartbeat. While the connection is down it is lost, as intended. */
export function sendBeat(nc: NatsConnection, beat: Heartbeat): void {
  if (!nc.isClosed()) nc.publish(HEARTBEAT_SUBJECT, JSON.stringify(beat));
}

/** Maximum wait for a worker's answer. The server's, that nobody listens, takes less than a millisecond. */
const PRESENCE_MS_MAX = 250;

/** Listens under the name of this worker as long as it is connected. Returns what ends it. */
export function showPresence(nc: NatsConnection, worker_id: string): () => void {
  const subscription = nc.subscribe(presenceSubject(worker_id), {
    callback: (error, message) => {
      if (error === null) message.respond();
    },
  });
  return () => {
    subscription.unsubscribe();
  };
}

/**
 * Returns true if no connection of a worker is left, which the NATS server knows at once when a process is killed. A
 * process that is paused or busy is not absent, and neither is one about which the server says nothing.
 */
export async function isAbsent(nc: NatsConnection, worker_id: string): Promise<boolean> {
  try {
    await nc.request(presenceSubject(worker_id), undefined, { timeout: PRESENCE_MS_MAX });
    return false;
  } catch (error) {
    return error instanceof RequestError && error.isNoResponders();
  }
}

interface Heard {
  /** Time of the last heartbeat on this process's monotonic clock, in milliseconds. */
  at: number;
  metrics_url: string;
  up: boolean;
  present: boolean;
  sticky: boolean;
}

/** The workers that were heard, and when. It survives reconnects. */
export class HeartbeatListener {
  readonly #heard = new Map<string, Heard>();
  readonly #stop: () => void;

  constructor(nc: NatsConnection, now: () => number = () => performance.now()) {
    const subscription = nc.subscribe(HEARTBEAT_SUBJECT, {
      callback: (error, message) => {
        const beat = error === null ? parseBeat(message.string()) : null;
        if (beat === null) return;
        if (beat.ended) this.#heard.delete(beat.worker_id);
        else
          this.#heard.set(beat.worker_id, {
            at: now(),
            metrics_url: beat.metrics_url,
            up: beat.up ?? true,
            present: beat.present ?? false,
            sticky: beat.sticky ?? false,
          });
      },
    });
    this.#stop = () => {
      subscription.unsubscribe();
    };
  }

  /** Returns the ids of the workers heard within the time, sorted. */
  live(now: number, withinMs: number): string[] {
    return [...this.#heard]
      .filter(([, { at }]) => now - at <= withinMs)
      .map(([worker]) => worker)
      .sort();
  }

  /** Returns the workers heard within the time whose presence can be asked for, sorted by id. */
  askable(now: number, withinMs: number): { worker_id: string; heard_at: number }[] {
    return this.live(now, withinMs).flatMap((worker_id) => {
      const heard = this.#heard.get(worker_id);
      return heard?.present === true ? [{ worker_id, heard_at: heard.at }] : [];
    });
  }

  /** Forgets a worker, as if it had announced its end. */
  remove(worker: string): void {
    this.#heard.delete(worker);
  }

  /** Returns when a worker was heard last; undefined for never. */
  heardAt(worker: string): number | undefined {
    return this.#heard.get(worker)?.at;
  }

  /** Returns true when a worker that was heard takes job calls. */
  isUp(worker: string): boolean {
    return this.#heard.get(worker)?.up ?? false;
  }

  /** Returns true when a worker that was heard divides the partitions as this version does. */
  isSticky(worker: string): boolean {
    return this.#heard.get(worker)?.sticky ?? false;
  }

  metricsUrl(worker: string): string | undefined {
    return this.#heard.get(worker)?.metrics_url;
  }

  /**
   * Counts every worker as heard now: after a time in which nothing could be heard, silence proves
   * nothing.
   */
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
