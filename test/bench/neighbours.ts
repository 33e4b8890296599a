// Noisy neighbours: how one organization's flood or hostile input affects the others. Quiet
// organizations send single events at a steady pace, and probes measure when an event can be read;
// alone and beside each kind of noise, in alternation on one service.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { loadSecrets } from '../../ops/launch/secrets.ts';
import { natsUrlOf } from './admission.ts';
import { singleBody } from './bodies.ts';
import { Load } from './load.ts';
import type { NeighbourResult, NeighbourTask } from './neighbour_child.ts';
import { DESCRIPTIONS, NOISES, SHARE, type NoiseName } from './neighbour_noise.ts';
import { atMost, ms, percentile, thousands, type Section } from './report.ts';
import { probe, probeFor, withOmitted } from './probes.ts';
import { merged, sqlRunner } from './store.ts';
import { laneTarget, type Target } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

const QUIET_ORGS = 4;
const ROUNDS = 3;
const LANES = 8;
const BODIES = 512;
/** Milliseconds of noise before anything is measured. */
const WARM_MS = 2000;
/** Interval of the probes, milliseconds. */
const PROBE_EVERY_MS = 100;
const SETTLE_MS_MAX = 120_000;
/** Maximum factor by which a neighbour may multiply the others' p99. */
const FACTOR_MAX = 2;

export interface NeighboursOptions {
  target: Target;
  vocabulary: Vocabulary;
  /** Seconds of each turn. */
  seconds: number;
  progress: (line: string) => void;
}

type Turn = NoiseName | 'alone';

/** The figures of one turn; milliseconds. */
interface Measured {
  ack: number[];
  visible: number[];
  /**
   * Requests of quiet organizations that were rejected or broke, and probes not seen in time, by
   * outcome.
   */
  lost: Record<string, number>;
  noise: NeighbourResult | null;
}

/** Creates an organization without limits. */
async function newOrg(target: Target, adminToken: string, org: string): Promise<Target> {
  const post = async (where: string, body: unknown): Promise<unknown> => {
    const headers = { Authorization: `Bearer ${adminToken}`, 'Content-Type': 'application/json' };
    const response = await fetch(target.url + where, { method: 'POST', headers, body: JSON.stringify(body) });
    if (response.status !== 201) throw new Error(`POST ${where}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const owner = { user_id: `u_${org}`, email: `${org}@example.com` };
  await post('/admin/orgs', { org_id: org, name: org, plan_name: 'enterprise', owner });
  const { raw_key } = (await post(`/admin/orgs/${org}/api-keys`, { name: 'bench', scopes: ['*'] })) as {
    raw_key: string;
  };
  return { ...target, org, key: raw_key };
}

/** Starts a neighbour that makes noise until it is stopped. */
async function beginNoise(task: NeighbourTask): Promise<() => Promise<NeighbourResult>> {
  const child = fork(new URL('./neighbour_child.ts', import.meta.url));
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the neighbour ${task.noise} ended by itself`);
  });
  ended.catch(() => undefined);
  child.send(task);
  await Promise.race([once(child, 'message'), ended]);
  return async () => {
    child.send('stop');
    const [result] = (await Promise.race([once(child, 'message'), ended])) as [NeighbourResult];
    await ended.catch(() => undefined);
    return result;
  };
}

class Bench {
  readonly #options: NeighboursOptions;
  readonly #quiet: readonly Target[];
  readonly #noisy: Target;
  readonly #natsUrl: string;
  readonly #bodies: ReturnType<typeof singleBody>[];

  constructor(options: NeighboursOptions, quiet: readonly Target[], noisy: Target, natsUrl: string) {
    this.#options = options;
    this.#quiet = quiet;
    this.#noisy = noisy;
    this.#natsUrl = natsUrl;
    const random = seededRandom(30);
    this.#bodies = Array.from({ length: BODIES }, () => singleBody(options.vocabulary, random));
  }

  async measure(turn: Turn): Promise<Measured> {
    const task = { lane: laneTarget(this.#noisy), org: this.#noisy.org, natsUrl: this.#natsUrl };
    const endNoise = turn === 'alone' ? null : await beginNoise({ noise: turn, ...task });
    await pause(WARM_MS);
    const loads = this.#quiet.map(
      (target, index) =>
        new Load({
          target: laneTarget(target),
          path: `/orgs/${target.org}/ingest/chatcompletion`,
          bodies: this.#bodies.filter((_, body) => body % this.#quiet.length === index),
          bodyEvents: 1,
          lanes: LANES,
          rate: SHARE,
        }),
    );
    for (const load of loads) load.start();
    const seen = await probeFor(this.#options.seconds * 1000, this.#quiet);
    await Promise.all(loads.map((load) => load.stop()));
    const noise = (await endNoise?.()) ?? null;
    const lost: Record<string, number> = {};
    const count = (what: string, times: number): void => {
      if (times > 0) lost[what] = (lost[what] ?? 0) + times;
    };
    count('probes not readable', seen.filter((one) => one === null).length);
    for (const { errors, statuses } of loads) {
      count('broken connections', errors);
      for (const [status, times] of statuses) count(String(status), times);
    }
    return {
      ack: loads.flatMap(({ latencies_ms }) => latencies_ms),
      visible: withOmitted(
        seen.flatMap((one) => one?.visible_ms ?? []),
        PROBE_EVERY_MS,
      ),
      lost,
      noise,
    };
  }

  /**
   * Waits until the neighbour's events have landed and are merged, so that the next turn finds
   * nothing of it.
   */
  async settle(): Promise<void> {
    const { target } = this.#options;
    for (const deadline = performance.now() + SETTLE_MS_MAX; performance.now() < deadline;) {
      const took = await probe(this.#quiet[0] ?? target).catch(() => null);
      if (took !== null && took.visible_ms < 1000) break;
    }
    if (target.clickhouseUrl !== null) await merged(sqlRunner(target.clickhouseUrl), SETTLE_MS_MAX);
  }
}

const p99 = (values: readonly number[]): number => percentile(values, 0.99);
const median = (values: readonly number[]): number => percentile(values, 0.5);

export async function benchNeighbours(options: NeighboursOptions): Promise<Section> {
  const { target, progress } = options;
  if (target.dataDir === null) throw new Error('neighbours takes a service of its own: leave --url out');
  const adminToken = loadSecrets(target.dataDir).admin_token;
  const quiet = await Promise.all(
    Array.from({ length: QUIET_ORGS }, (_, index) => newOrg(target, adminToken, `org_quiet_${index}`)),
  );
  const bench = new Bench(
    options,
    quiet,
    await newOrg(target, adminToken, 'org_noisy'),
    await natsUrlOf(target.dataDir),
  );
  const turns: readonly Turn[] = ['alone', ...wanted()];
  const results = new Map<Turn, Measured[]>(turns.map((turn) => [turn, []]));
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const turn of turns) {
      await bench.settle();
      const measured = await bench.measure(turn);
      results.get(turn)?.push(measured);
      const { ack, visible, lost, noise } = measured;
      progress(
        `  round ${round}  ${turn.padEnd(12)} ack p99 ${ms(p99(ack))} ms, readable p99 ${ms(p99(visible))} ms, lost ${JSON.stringify(lost)}; neighbour ${JSON.stringify(noise ?? {})}`,
      );
    }
  }
  const of = (turn: Turn, pick: (measured: Measured) => readonly number[]): number =>
    median((results.get(turn) ?? []).map((measured) => p99(pick(measured))));
  const [ackAlone, visibleAlone] = [of('alone', ({ ack }) => ack), of('alone', ({ visible }) => visible)];
  return {
    title: `Noisy neighbours (${QUIET_ORGS} quiet orgs of ${SHARE} single events/s; median of ${ROUNDS} rounds of the p99 of each)`,
    rows: turns.map((turn) => {
      const [ack, visible] = [of(turn, (measured) => measured.ack), of(turn, (measured) => measured.visible)];
      const all = results.get(turn) ?? [];
      const accepted =
        all.reduce((sum, { noise }) => sum + (noise?.accepted ?? 0), 0) / ROUNDS / (options.seconds + WARM_MS / 1000);
      const lost = all.flatMap((measured) => Object.entries(measured.lost)).map(([what, count]) => `${count} ${what}`);
      const statuses = [...new Set(all.flatMap(({ noise }) => Object.keys(noise?.statuses ?? {})))].sort().join(', ');
      return {
        what: turn === 'alone' ? 'alone' : `${turn}: ${DESCRIPTIONS[turn]}`,
        value: `acknowledged ${ms(ack)} ms${times(ack, ackAlone)}, readable ${ms(visible)} ms${times(visible, visibleAlone)}`,
        bar: turn === 'alone' ? '' : `≤ ${FACTOR_MAX} times`,
        measures: [
          { name: 'acknowledged_p99', value: ack, unit: 'ms' as const },
          { name: 'readable_p99', value: visible, unit: 'ms' as const },
          ...(turn === 'alone'
            ? []
            : [
                { name: 'acknowledged_times', value: ack / ackAlone, unit: 'share' as const, bar: atMost(FACTOR_MAX) },
                {
                  name: 'readable_times',
                  value: visible / visibleAlone,
                  unit: 'share' as const,
                  bar: atMost(FACTOR_MAX),
                },
              ]),
        ],
        note: `of quiet orgs ${lost.length === 0 ? 'nothing lost' : `not taken: ${lost.join(', ')}`}${turn === 'alone' ? '' : `; neighbour: ${thousands(accepted)} events/s taken, answers ${statuses}`}`,
      };
    }),
    data: Object.fromEntries(
      turns.map((turn) => [
        turn,
        (results.get(turn) ?? []).map(({ ack, visible, lost, noise }) => ({
          ack_p50_ms: percentile(ack, 0.5),
          ack_p99_ms: p99(ack),
          visible_p50_ms: percentile(visible, 0.5),
          visible_p99_ms: p99(visible),
          lost,
          noise,
        })),
      ]),
    ),
  };
}

const times = (value: number, alone: number): string =>
  value === alone ? '' : ` (${(value / alone).toFixed(1)} times)`;

/** MILLRACE_NOISES=batches,huge measures only these. */
function wanted(): readonly NoiseName[] {
  const named = process.env['MILLRACE_NOISES']?.split(',');
  return named === undefined ? NOISES : NOISES.filter((noise) => named.includes(noise));
}
