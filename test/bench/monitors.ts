// Monitors: the time in which the worker evaluates as many as an organization can have, while events
// arrive. No two of them measure the same, which is the most work that they can be: they share
// statements, and no value. Scheduled runs evaluate them; the age that the state of each monitor
// reaches is measured.
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
/** Scheduled runs that are observed. */
const MINUTES = 3;
const MINUTE_MS = 60_000;
const POLL_MS = 2000;
const PAGE = 200;
/** A state may be as old as the time between two runs, and the run itself. */
const AGE_S_MAX = 120;

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
  progress('  created; waiting until each was evaluated once');
  while ([...(await evaluations(target)).values()].some((at) => at === 0)) await pause(POLL_MS);
  const beside = load(BESIDE_RATE, (MINUTES * MINUTE_MS) / 1000);
  const ages: number[] = [];
  const runs = new Set<number>();
  const end = Date.now() + MINUTES * MINUTE_MS;
  while (Date.now() < end) {
    const found = await evaluations(target);
    const now = Date.now();
    for (const at of found.values()) {
      ages.push((now - at) / 1000);
      runs.add(Math.floor(at / MINUTE_MS));
    }
    await pause(POLL_MS);
  }
  const { acknowledged } = await beside;
  const [spread, late] = [lastRun(await evaluations(target)), percentile(ages, 1)];
  return {
    title: `${thousands(MONITORS)} monitors, each with a measurement of its own over ${thousands(filled.acknowledged + acknowledged)} spans of the last ${WINDOW_MINUTES} minutes, ${BESIDE_RATE} events a second beside`,
    rows: [
      {
        what: 'age of the oldest state',
        value: `${late.toFixed(0)} s`,
        bar: `≤ ${AGE_S_MAX} s`,
        note: `p50 ${percentile(ages, 0.5).toFixed(0)} s; evaluated every minute, and as of the minute`,
        measures: single(late, 's', atMost(AGE_S_MAX), ages.length),
      },
      {
        what: 'monitors not evaluated in the newest run',
        value: thousands(spread),
        bar: '0',
        measures: single(spread, 'count', atMost(0)),
      },
      { what: 'scheduled runs observed', value: thousands(runs.size), measures: single(runs.size, 'count') },
    ],
    data: { ages_s: { p50: percentile(ages, 0.5), p99: percentile(ages, 0.99), max: late }, runs: runs.size },
  };
}

/** Returns the monitors whose state is older than the run before the newest. */
function lastRun(found: ReadonlyMap<string, number>): number {
  const newest = Math.max(...found.values());
  return [...found.values()].filter((at) => newest - at > 1.5 * MINUTE_MS).length;
}
