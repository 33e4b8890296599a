// Freshness under load: the time from sending an event until the service shows it in a tree.
import { setTimeout as pause } from 'node:timers/promises';
import { BATCH_EVENTS, batchBody } from './bodies.ts';
import { Load } from './load.ts';
import { probeFor, withOmitted } from './probes.ts';
import { barText, p50p99, percentile, quantiles, thousands, type Section } from './report.ts';
import { laneTarget, type Target } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

const LANES = 4;
const BODIES = 64;
const WARM_MS = 5000;
const BARS = { p50: 200, p99: 600 };
/** Interval of the probes, milliseconds. */
const EVERY_MS = 100;

export interface FreshnessOptions {
  target: Target;
  vocabulary: Vocabulary;
  seconds: number;
  /** Events a second beside the probes. */
  rate: number;
  progress: (line: string) => void;
}

export async function benchFreshness({
  target,
  vocabulary,
  seconds,
  rate,
  progress,
}: FreshnessOptions): Promise<Section> {
  progress(`freshness: one event after the other beside ${thousands(rate)} events/s, ${seconds} s`);
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
  const sentBefore = load.acknowledged;
  const results = await probeFor(seconds * 1000, [target]);
  const achieved = (load.acknowledged - sentBefore) / ((performance.now() - began) / 1000);
  await load.stop();
  const seen = results.filter((result) => result !== null);
  const visible = withOmitted(
    seen.map(({ visible_ms }) => visible_ms),
    EVERY_MS,
  );
  const acknowledged = seen.map(({ acknowledged_ms }) => acknowledged_ms);
  return {
    title: `Freshness beside ${thousands(achieved)} events/s`,
    rows: [
      {
        what: 'sent to visible in the tree',
        value: quantiles(visible),
        bar: barText(BARS),
        note: `most ${thousands(Math.max(...visible))} ms; ${results.length} events, one every ${EVERY_MS} ms while one is waited for counted as well; ${results.length - seen.length} not seen within 30 s`,
        measures: p50p99(visible, BARS),
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
