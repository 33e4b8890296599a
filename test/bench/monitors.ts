// Monitors: the time in which the worker evaluates as many as an organization can have, while events
// arrive. No two of them measure the same, which is the most work that they can be: they share
// statements, and no value. Each is due at every full minute; the time from then until its new state
// can be read is its delay. The age of a state is that delay and the minute before it.
import { setTimeout as pause } from 'node:timers/promises';
import { BATCH_EVENTS, batchBody } from './bodies.ts';
import { runLoad } from './ingest.ts';
import { atMost, percentile, type Section, single, thousands } from './report.ts';
import type { RunSql } from './store.ts';
import type { Target } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

/** Monitors that one organization can have. */
const MONITORS = 1000;
const WINDOW_MINUTES = 15;
const BODIES = 64;
const LANES = 4;
/** Events a second that arrive beside the evaluations. */
const BESIDE_RATE = 500;
/** Scheduled runs that are observed. The first of them makes the state of most monitors. */
const MINUTES = 3;
const MINUTE_MS = 60_000;
const POLL_MS = 1000;
const PAGE = 200;
/** A monitor is evaluated within a minute of the minute in which it is due. */
const DELAY_S_MAX = 60;
/** Time before a full minute in which no run is in progress. */
const MARGIN_MS = 3000;
/** So a state is at most as old as the time between two runs and that delay. */
const AGE_S_MAX = 60 + DELAY_S_MAX;

export interface MonitorsBenchOptions {
  target: Target;
  runSql: RunSql;
  vocabulary: Vocabulary;
  seconds: number;
  progress: (line: string) => void;
}

interface Answer {
  data: unknown;
  meta: { total: number };
}

async function ask(target: Target, method: string, path: string, body?: unknown): Promise<Answer> {
  for (;;) {
    const response = await fetch(target.url + path, {
      method,
      headers: { 'X-Org-Api-Key': target.key, 'X-Org-Id': target.org, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Answer;
    if (response.ok) return answer;
    if (response.status !== 429) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    await pause(Number(response.headers.get('retry-after') ?? 1) * 1000);
  }
}

/** Creates monitors of which each reads other rows, with and without groups. */
async function makeMonitors(target: Target): Promise<void> {
  for (let serial = 0; serial < MONITORS; serial++)
    await ask(target, 'POST', '/v1/monitors', {
      name: `bench ${serial}`,
      query: {
        view: 'spans',
        measures: [serial % 2 === 0 ? { measure: 'duration_ms', agg: 'p95' } : { measure: 'error_rate' }],
        filters: [{ field: 'duration_ms', op: 'gte', value: serial }],
      },
      group_by: serial % 4 < 2 ? ['model'] : [],
      window_minutes: WINDOW_MINUTES,
      threshold: { above: 1e9 },
    });
}

/** Returns when each monitor was last evaluated, in milliseconds since the epoch; 0: never. */
async function evaluations(target: Target): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (let offset = 0; offset < MONITORS; offset += PAGE) {
    const { data } = await ask(target, 'GET', `/v1/monitors?limit=${PAGE}&offset=${offset}`);
    for (const { monitor_id, evaluated_at, error } of data as {
      monitor_id: string;
      evaluated_at: string | null;
      error: string | null;
    }[]) {
      if (error !== null) throw new Error(`a monitor cannot be evaluated: ${error}`);
      found.set(monitor_id, evaluated_at === null ? 0 : Date.parse(evaluated_at));
    }
  }
  return found;
}

/** Collects what polls of the API say of the states: their ages, and the delay of each evaluation. */
class Watched {
  readonly ages: number[] = [];
  /** Seconds from each due minute until each monitor's state was seen; the poll adds up to its interval. */
  readonly delays: number[] = [];
  /** Due minute, milliseconds since the epoch: how many monitors were evaluated, and the longest delay. */
  readonly runs = new Map<number, { monitors: number; delay_s: number }>();
  #before = new Map<string, number>();

  add(found: ReadonlyMap<string, number>, now: number): void {
    for (const [monitor_id, at] of found) {
      if (at > 0) this.ages.push((now - at) / 1000);
      const before = this.#before.get(monitor_id);
      if (before === undefined || before === at) continue;
      const due = Math.floor(at / MINUTE_MS) * MINUTE_MS;
      const delay_s = (now - due) / 1000;
      const run = this.runs.get(due) ?? { monitors: 0, delay_s: 0 };
      this.runs.set(due, { monitors: run.monitors + 1, delay_s: Math.max(run.delay_s, delay_s) });
      this.delays.push(delay_s);
    }
    this.#before = new Map(found);
  }

  /** Evaluations that are missing in the minutes between the first and the last run that was seen. */
  get missing(): number {
    const due = [...this.runs.keys()];
    const minutes = due.length === 0 ? 0 : (Math.max(...due) - Math.min(...due)) / MINUTE_MS + 1;
    return Math.max(1, minutes) * MONITORS - this.delays.length;
  }
}

export async function benchMonitors(options: MonitorsBenchOptions): Promise<Section> {
  const { target, runSql, vocabulary, seconds, progress } = options;
  const random = seededRandom(29);
  const bodies = Array.from({ length: BODIES }, () => batchBody('plain', vocabulary, random));
  const load = (rate: number, length: number) =>
    runLoad({
      target,
      runSql,
      format: 'custom',
      bodies,
      bodyEvents: BATCH_EVENTS,
      lanes: LANES,
      rate,
      seconds: length,
      progress,
    });
  progress(`monitors: ${MONITORS} of them, after ${seconds / 3} s of load`);
  const filled = await load(Infinity, Math.max(5, seconds / 3));
  await makeMonitors(target);
  // Observed from before the first run until before the one that is not observed.
  const begin = Math.ceil((Date.now() + MARGIN_MS) / MINUTE_MS) * MINUTE_MS - MARGIN_MS;
  const end = begin + MINUTES * MINUTE_MS;
  const beside = load(BESIDE_RATE, (end - Date.now()) / 1000);
  progress(`  created; watched from ${new Date(begin).toISOString()} on`);
  const watched = new Watched();
  await pause(begin - Date.now());
  while (Date.now() < end) {
    const found = await evaluations(target);
    watched.add(found, Date.now());
    await pause(POLL_MS);
  }
  const { acknowledged } = await beside;
  for (const [due, { monitors, delay_s }] of watched.runs)
    progress(`  due ${new Date(due).toISOString()}: ${monitors} evaluated, the last after ${delay_s.toFixed(1)} s`);
  const { ages, delays, runs, missing } = watched;
  const [oldest, latest] = [percentile(ages, 1), percentile(delays, 1)];
  return {
    title: `${thousands(MONITORS)} monitors, each with a measurement of its own over ${thousands(filled.acknowledged + acknowledged)} spans of the last ${WINDOW_MINUTES} minutes, ${BESIDE_RATE} events a second beside`,
    rows: [
      {
        what: 'from the due minute until the last monitor is evaluated',
        value: `${latest.toFixed(1)} s`,
        bar: `≤ ${DELAY_S_MAX} s`,
        note: `p50 ${percentile(delays, 0.5).toFixed(1)} s; the poll adds up to ${POLL_MS / 1000} s`,
        measures: single(latest, 's', atMost(DELAY_S_MAX), delays.length),
      },
      {
        what: 'age of the oldest state',
        value: `${oldest.toFixed(0)} s`,
        bar: `≤ ${AGE_S_MAX} s`,
        note: `p50 ${percentile(ages, 0.5).toFixed(0)} s; a state is as of its minute, and a minute and the delay old before the next`,
        measures: single(oldest, 's', atMost(AGE_S_MAX), ages.length),
      },
      {
        what: 'evaluations that were due and did not take place',
        value: thousands(missing),
        bar: '0',
        note: `${thousands(delays.length)} took place in ${runs.size} minutes`,
        measures: single(missing, 'count', atMost(0)),
      },
    ],
    data: {
      delays_s: { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99), max: latest },
      ages_s: { p50: percentile(ages, 0.5), p99: percentile(ages, 0.99), max: oldest },
      runs: [...runs].map(([due, run]) => ({ due: new Date(due).toISOString(), ...run })),
    },
  };
}
