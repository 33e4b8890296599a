// Follows one key of a KV bucket, for records that every process has to know soon.
import { setTimeout as sleep } from 'node:timers/promises';
import type { KV, KvEntry } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';

interface Followed {
  nc: NatsConnection;
  kv: KV;
}

type Take = (entry: KvEntry) => void | Promise<void>;

/** A watch that broke is opened again after this time, in milliseconds. */
const WATCH_AGAIN_MS = 250;

/**
 * Calls back with the present entry, with each new one, and with the present one again after each reconnect, until
 * the connection closes: the client opens a watch again only when a later change shows a gap, so it would never show
 * the last change that it missed. An entry may come twice, and an older one after a newer one.
 */
export function followKey(followed: Followed, key: string, take: Take): void {
  void watch(followed, key, take);
  void followConnection(followed, key, take);
}

async function watch({ nc, kv }: Followed, key: string, take: Take): Promise<void> {
  while (!nc.isClosed()) {
    try {
      for await (const entry of await kv.watch({ key })) await take(entry);
    } catch {
      // The next watch begins with the present entry.
    }
    await sleep(WATCH_AGAIN_MS, undefined, { ref: false });
  }
}

async function followConnection({ nc, kv }: Followed, key: string, take: Take): Promise<void> {
  for await (const { type } of nc.status()) {
    if (type !== 'reconnect') continue;
    try {
      const entry = await kv.get(key);
      if (entry !== null) await take(entry);
    } catch {
      // The watch brings what cannot be read or taken now.
    }
  }
}
