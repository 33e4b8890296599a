// Freshness under load: the time from sending an event until the service shows it in a tree.
import { randomBytes } from 'node:crypto';
import { BATCH_EVENTS, batchBody } from './bodies.ts';
import { Load } from './load.ts';
import { p50p99, percentile, quantiles, thousands, type Section } from './report.ts';
import { laneTarget, type Target } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

const LANES = 4;
const BODIES = 64;
const WARM_MS = 5000;
/** A probe begins this often; each looks for its event this often. */
const PROBE_MS = 100;
const LOOK_MS = 15;
const GIVE_UP_MS = 30_000;

export interface FreshnessOptions {
  target: Target;
  vocabulary: Vocabulary;
  seconds: number;
  /** Events a second beside the probes. */
  rate: number;
  progress: (line: string) => void;
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

export interface Probe {
  acknowledged_ms: number;
  visible_ms: number;
}

/** Sends one event and waits until its tree shows it; null when it did not come within 30 s. */
export async function probe({ url, org, key }: Target): Promise<Probe | null> {
  const headers = { 'X-Org-Api-Key': key, 'X-Org-Id': org, 'Content-Type': 'application/json' };
  const trace = `trc_${randomBytes(8).toString('hex')}`;
  const began = performance.now();
  const sent = await fetch(`${url}/orgs/${org}/ingest/custom`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ name: 'freshness', event_type: 'freshness', outcome: 'success', duration_ms: 1, trace_id: trace }),
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

export async function benchFreshness({ target, vocabulary, seconds, rate, progress }: FreshnessOptions): Promise<Section> {
  progress(`freshness: a probe every ${String(PROBE_MS)} ms beside ${thousands(rate)} events/s, ${String(seconds)} s`);
  const random = seededRandom(13);
  const bodies = Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random));
  const load = new Load({
    target: laneTarget(target),
    path: `/orgs/${target.org}/ingest/custom`,
    bodies,
    bodyEvents: BATCH_EVENTS,
    lanes: LANES,
    rate,
  });
  load.start();
  await pause(WARM_MS);
  const began = performance.now();
  const [sentBefore, probes] = [load.acknowledged, [] as Promise<Probe | null>[]];
  while (performance.now() - began < seconds * 1000) {
    probes.push(probe(target).catch(() => null));
    await pause(PROBE_MS);
  }
  const achieved = (load.acknowledged - sentBefore) / ((performance.now() - began) / 1000);
  const results = await Promise.all(probes);
  await load.stop();
  const seen = results.filter((result) => result !== null);
  const visible = seen.map(({ visible_ms }) => visible_ms);
  const acknowledged = seen.map(({ acknowledged_ms }) => acknowledged_ms);
  return {
    title: `Freshness beside ${thousands(achieved)} events/s`,
    rows: [
      {
        what: 'sent to visible in the tree',
        value: quantiles(visible),
        bar: 'p50 ≤ 250 ms, p99 ≤ 1 s',
        note: `most ${thousands(Math.max(...visible))} ms; ${String(results.length - seen.length)} not seen within 30 s`,
        measures: p50p99(visible, { p50: 250, p99: 1000 }),
      },
      { what: 'sent to acknowledged', value: quantiles(acknowledged), measures: p50p99(acknowledged) },
    ],
    data: {
      rate: achieved,
      visible_p50_ms: percentile(visible, 0.5),
      visible_p99_ms: percentile(visible, 0.99),
      visible_max_ms: Math.max(...visible),
      acknowledged_p50_ms: percentile(acknowledged, 0.5),
      acknowledged_p99_ms: percentile(acknowledged, 0.99),
      probes: results.length,
      lost: results.length - seen.length,
    },
  };
}
