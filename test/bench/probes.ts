// How long it takes until what is sent can be read: events sent one after the other, each looked for until its tree shows it.
// One at a time: were they sent by the clock, a slow service would be asked more often the slower it is, and what is measured would be the
// asking. What a clock would have sent meanwhile is counted as if it had been (withOmitted).
import { randomBytes, randomInt } from 'node:crypto';
import type { Target } from './target.ts';

/** Between two looks; the resolution of what is measured. */
const LOOK_MS = 15;
const GIVE_UP_MS = 30_000;
/** Before the next event, at random up to this: probes are not to fall into step with landings. */
const REST_MS_MAX = 100;

/** Milliseconds since the event was sent. */
export interface Probe {
  acknowledged_ms: number;
  visible_ms: number;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends one event and waits until its tree shows it; null when it was not taken, or did not come within 30 s. */
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
 * Times with those that were left out while one was waited for: of a time t longer than `everyMs` also t − everyMs, t − 2 everyMs, …, which
 * is what events sent by the clock meanwhile would have waited (the correction of coordinated omission, Gil Tene's HdrHistogram).
 */
export function withOmitted(times: readonly number[], everyMs: number): number[] {
  return times.flatMap((time) =>
    Array.from({ length: Math.max(1, Math.ceil(time / everyMs)) }, (_, index) => time - index * everyMs),
  );
}

/** Probes for so long, as each of the targets in turn. Null: one that was not taken, or not seen in time. */
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
