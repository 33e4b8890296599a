// Measures how long it takes until a sent event can be read: events are sent one after the other,
// each queried until its tree shows it. One at a time: if a clock sent them, a slower service would
// be queried more often, and the queries would be measured. Events that a clock would have sent
// meanwhile are counted as if they had been sent (withOmitted).
import { randomBytes, randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Target } from './target.ts';

/** Milliseconds between two queries: the resolution of the measurement. */
const LOOK_MS = 15;
const GIVE_UP_MS = 30_000;
/** Maximum random pause before the next event, so that probes do not synchronise with landings. */
const REST_MS_MAX = 100;

/** Times since the event was sent, milliseconds. */
export interface Probe {
  acknowledged_ms: number;
  visible_ms: number;
}

/**
 * Sends one event and waits until its tree shows it; null when it was rejected, or not visible
 * within 30 s.
 */
export async function probe({ url, org, key }: Target): Promise<Probe | null> {
  const headers = { 'X-Org-Api-Key': key, 'X-Org-Id': org, 'Content-Type': 'application/json' };
  const trace = `trc_${randomBytes(8).toString('hex')}`;
  const began = performance.now();
  const sent = await fetch(`${url}/orgs/${org}/ingest/custom`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ name: 'probe', event_type: 'probe', outcome: 'success', duration_ms: 1, trace_id: trace }),
  });
  await sent.arrayBuffer();
  if (sent.status !== 200) return null;
  const acknowledged = performance.now() - began;
  while (performance.now() - began < GIVE_UP_MS) {
    const tree = await fetch(`${url}/v1/traces/${trace}/tree`, { headers });
    await tree.arrayBuffer();
    if (tree.status === 200) return { acknowledged_ms: acknowledged, visible_ms: performance.now() - began };
    await pause(LOOK_MS);
  }
  return null;
}

/**
 * Returns the times including those omitted while one was waited for: for a time t longer than
 * `everyMs` also t − everyMs, t − 2 everyMs, …, which is how long events sent by the clock
 * meanwhile would have waited (the correction of coordinated omission, Gil Tene's HdrHistogram).
 */
export function withOmitted(times: readonly number[], everyMs: number): number[] {
  return times.flatMap((time) =>
    Array.from({ length: Math.max(1, Math.ceil(time / everyMs)) }, (_, index) => time - index * everyMs),
  );
}

/**
 * Probes for `ms` milliseconds, as each of the targets in turn. Null: a probe that was rejected, or
 * not visible in time.
 */
export async function probeFor(ms: number, targets: readonly Target[]): Promise<(Probe | null)[]> {
  const results: (Probe | null)[] = [];
  const began = performance.now();
  while (performance.now() - began < ms) {
    const target = targets[results.length % targets.length];
    if (target !== undefined) results.push(await probe(target).catch(() => null));
    await pause(randomInt(REST_MS_MAX));
  }
  return results;
}
