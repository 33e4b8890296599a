// The duration of a start: the first one in an empty data folder with dependencies installed, until
// the first trace is visible, and later starts on a used folder.
import { rmSync } from 'node:fs';
import { BATCH_EVENTS, batchBody } from './bodies.ts';
import { Load } from './load.ts';
import { probe } from './probes.ts';
import { atMost, percentile, single, thousands, type Section } from './report.ts';
import { laneTarget, newPlace, startAt, type StartedTarget } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

const RESTARTS = 3;
const FIRST_S_MAX = 120;
const AGAIN_S_MAX = 5;
/** Seconds of load that make the folder a used one. */
const USED_SECONDS = 10;
const USED_RATE = 2000;
const LANES = 2;
const BODIES = 16;

export interface StartsOptions {
  vocabulary: Vocabulary;
  /** Ends the running service when the run is stopped. */
  stopping: AbortSignal;
  progress: (line: string) => void;
}

/** Sends events for some seconds. */
async function use(target: StartedTarget, vocabulary: Vocabulary): Promise<number> {
  const random = seededRandom(19);
  const load = new Load({
    target: laneTarget(target),
    path: `/orgs/${target.org}/ingest/custom`,
    bodies: Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random)),
    bodyEvents: BATCH_EVENTS,
    lanes: LANES,
    rate: USED_RATE,
  });
  load.start();
  await new Promise((resolve) => setTimeout(resolve, USED_SECONDS * 1000));
  await load.stop();
  return load.acknowledged;
}

/** Starts services of its own. */
export async function benchStarts({ vocabulary, stopping, progress }: StartsOptions): Promise<Section> {
  const place = await newPlace();
  let running: StartedTarget | null = null;
  const start = async (): Promise<StartedTarget> => {
    stopping.throwIfAborted();
    const target = await startAt(place, {}, { bootstrap: true });
    running = target;
    return target;
  };
  const stop = async (target: StartedTarget): Promise<void> => {
    await target.stop();
    running = null;
  };
  const onAbort = (): void => void running?.stop().then(() => process.exit(130));
  stopping.addEventListener('abort', onAbort);
  try {
    progress('start: an empty data folder');
    const first = await start();
    const seen = await probe(first);
    const events = await use(first, vocabulary);
    await stop(first);
    const again: number[] = [];
    for (let turn = 1; turn <= RESTARTS; turn += 1) {
      progress(`start: again, ${turn} of ${RESTARTS}`);
      const target = await start();
      again.push(target.ready_s);
      await stop(target);
    }
    return sectionOf({
      first_s: first.ready_s,
      seen_s: first.ready_s + (seen?.visible_ms ?? NaN) / 1000,
      again_s: again,
      events,
    });
  } finally {
    stopping.removeEventListener('abort', onAbort);
    await (running as StartedTarget | null)?.stop();
    rmSync(place.dataDir, { recursive: true, force: true });
  }
}

function sectionOf(data: { first_s: number; seen_s: number; again_s: number[]; events: number }): Section {
  const median = percentile(data.again_s, 0.5);
  return {
    title: 'Starting, dependencies in place',
    rows: [
      {
        what: 'an empty data folder, to the first trace seen',
        value: `${data.seen_s.toFixed(1)} s`,
        bar: '≤ 2 min',
        note: `ready after ${data.first_s.toFixed(1)} s`,
        measures: single(data.seen_s, 's', atMost(FIRST_S_MAX), 1),
      },
      {
        what: 'start again, to ready',
        value: `${median.toFixed(1)} s`,
        bar: '≤ 5 s',
        note: `median of ${data.again_s.map((seconds) => seconds.toFixed(1)).join(', ')} s; a folder of ${thousands(data.events)} events`,
        measures: [
          { name: 'median', value: median, unit: 's', samples: data.again_s.length, bar: atMost(AGAIN_S_MAX) },
        ],
      },
    ],
    data,
  };
}
