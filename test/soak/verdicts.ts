// The verdicts of a soak run: pure rules over its samples. A rule with too few samples says so
// instead of passing.
import type { ProcessFigures, Sample } from './figures.ts';

export interface Verdict {
  what: string;
  found: string;
  bound: string;
  /** Null when the run was too short to tell. */
  ok: boolean | null;
}

/** What is known at the end. */
export interface Outcome {
  acknowledged: number;
  /** Spans in the store when nothing changed any more. */
  landed: number;
  abandoned: number;
  faults: readonly string[];
  /** Maximum size of the ingest log. */
  log_bytes_max: number;
  /** Restarts by this process; all others happened by themselves. */
  restarts: number;
}

/** A process fills its caches for this long after its start, which is no leak. */
export const WARM_S = 600;
/** Time of a process, over all its warm lives, that a slope needs. */
export const SEEN_S_MIN = 1200;
const HOUR_S = 3600;
const MIB = 1024 ** 2;
/** Growth an hour that counts as flat: this much, or this share of what the process has. */
const FLAT_MIB_PER_HOUR = 32;
const FLAT_SHARE_PER_HOUR = 0.05;
/** Descriptors that come and go with merges, connections and files of the log. */
const DESCRIPTORS_MORE = 64;
/** Maximum active parts of a table. Beyond 3,000 in one partition the store rejects inserts. */
const PARTS_MAX = 600;
/** Disk for an event in the last third of the run, relative to all of it. */
const DISK_GROWTH_MAX = 1.25;
/**
 * Bytes in the store's folder beyond its active parts: parts replaced by merges of the last minutes
 * (old_parts_lifetime), which grow with the parts, and the engine's own logs.
 */
const DISK_BESIDE_MAX_BYTES = 2 * 1024 * MIB;
const DISK_BESIDE_MAX_SHARE = 0.5;
const LAG_SECONDS_MAX = 10;
const LIVES_POINTS_MIN = 5;

type Point = readonly [x: number, y: number];

/**
 * Returns the slope that several lines share, each with a height of its own (least squares with an
 * intercept a group): how fast a process grows over all its lives. NaN with too few points.
 */
export function commonSlope(lives: readonly (readonly Point[])[]): number {
  let [xx, xy] = [0, 0];
  for (const life of lives) {
    const mean = (at: 0 | 1): number => life.reduce((sum, point) => sum + point[at], 0) / life.length;
    const [meanX, meanY] = [mean(0), mean(1)];
    for (const [x, y] of life) {
      xx += (x - meanX) ** 2;
      xy += (x - meanX) * (y - meanY);
    }
  }
  return xx === 0 ? NaN : xy / xx;
}

/** Returns the values of one part by the life of its process, once it is warm. */
export function warmLives(
  samples: readonly Sample[],
  part: string,
  pick: (process: ProcessFigures, sample: Sample) => number,
): Point[][] {
  const lives = new Map<number, Point[]>();
  for (const sample of samples) {
    for (const process of sample.processes) {
      if (process.part !== part) continue;
      const life = lives.get(process.pid) ?? [];
      life.push([sample.at_s, pick(process, sample)]);
      lives.set(process.pid, life);
    }
  }
  return [...lives.values()]
    .map((life) => life.filter(([at, value]) => at - (life[0]?.[0] ?? 0) >= WARM_S && Number.isFinite(value)))
    .filter((life) => life.length >= LIVES_POINTS_MIN);
}

export const partsOf = (samples: readonly Sample[]): string[] => [
  ...new Set(samples.flatMap(({ processes }) => processes.map(({ part }) => part))),
];

const seenS = (lives: readonly (readonly Point[])[]): number =>
  lives.reduce((sum, life) => sum + (life.at(-1)?.[0] ?? 0) - (life[0]?.[0] ?? 0), 0);
const meanOf = (lives: readonly (readonly Point[])[]): number => {
  const values = lives.flat().map(([, value]) => value);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
};

function memoryVerdict(samples: readonly Sample[], part: string): Verdict {
  // A worker's window of ids is excluded: it grows by design, in jumps, up to a bound of its own.
  const isWorker = part === 'worker';
  const lives = warmLives(
    samples,
    part,
    ({ rss_bytes }, { dedupe_bytes }) => (rss_bytes - (isWorker ? dedupe_bytes : 0)) / MIB,
  );
  const what = `memory of ${part}${isWorker ? ' without its window of ids' : ''}`;
  const bound = `grows by ≤ ${FLAT_MIB_PER_HOUR} MiB or ${FLAT_SHARE_PER_HOUR * 100} % an hour`;
  if (seenS(lives) < SEEN_S_MIN)
    return { what, found: `seen for ${seenS(lives).toFixed(0)} s after it was warm`, bound, ok: null };
  const perHour = commonSlope(lives) * HOUR_S;
  const mean = meanOf(lives);
  return {
    what,
    found: `${perHour >= 0 ? '+' : ''}${perHour.toFixed(1)} MiB an hour, at ${mean.toFixed(0)} MiB, over ${lives.length} lives`,
    bound,
    ok: perHour <= Math.max(FLAT_MIB_PER_HOUR, mean * FLAT_SHARE_PER_HOUR),
  };
}

function descriptorVerdict(samples: readonly Sample[], part: string): Verdict {
  const lives = warmLives(samples, part, ({ descriptors }) => descriptors);
  const bound = `at most ${DESCRIPTORS_MORE} more at the end of a life than at its beginning`;
  const what = `descriptors of ${part}`;
  if (seenS(lives) < SEEN_S_MIN)
    return { what, found: `seen for ${seenS(lives).toFixed(0)} s after it was warm`, bound, ok: null };
  const third = (life: readonly Point[], last: boolean): number => {
    const size = Math.max(1, Math.floor(life.length / 3));
    return meanOf([last ? life.slice(-size) : life.slice(0, size)]);
  };
  const grown = Math.max(...lives.map((life) => third(life, true) - third(life, false)));
  return {
    what,
    found: `${grown >= 0 ? '+' : ''}${grown.toFixed(0)}, at ${meanOf(lives).toFixed(0)}`,
    bound,
    ok: grown <= DESCRIPTORS_MORE,
  };
}

const finite = (samples: readonly Sample[], pick: (sample: Sample) => number): Point[] =>
  samples.map((sample): Point => [sample.at_s, pick(sample)]).filter(([, value]) => Number.isFinite(value));

function partsVerdict(samples: readonly Sample[]): Verdict {
  const most = new Map<string, number>();
  for (const { parts } of samples)
    for (const [table, count] of Object.entries(parts)) most.set(table, Math.max(count, most.get(table) ?? 0));
  const [table = 'none', count = 0] = [...most].sort((a, b) => b[1] - a[1])[0] ?? [];
  return {
    what: 'active parts of a table',
    found: `${count} at most (${table})`,
    bound: `≤ ${PARTS_MAX}`,
    ok: most.size === 0 ? null : count <= PARTS_MAX,
  };
}

/** Checks whether an event takes as much disk at the end as before: only the data may grow. */
function diskVerdicts(samples: readonly Sample[]): Verdict[] {
  const store = samples.filter(({ part_bytes, landed, disk_bytes }) =>
    Number.isFinite(part_bytes + landed + (disk_bytes['clickhouse'] ?? NaN)),
  );
  const what = 'disk of the store for an event';
  const bound = `in the last third ≤ ${DISK_GROWTH_MAX} times as in all`;
  const [first, last] = [store[0], store.at(-1)];
  const from = store[Math.floor((store.length * 2) / 3)];
  const verdicts: Verdict[] = [];
  if (
    first === undefined ||
    last === undefined ||
    from === undefined ||
    last.at_s - first.at_s < SEEN_S_MIN ||
    last.landed === from.landed
  ) {
    verdicts.push({ what, found: 'the run was short', bound, ok: null });
  } else {
    const perEvent = (a: Sample, b: Sample): number =>
      ((b.disk_bytes['clickhouse'] ?? NaN) - (a.disk_bytes['clickhouse'] ?? NaN)) / (b.landed - a.landed);
    const [all, late] = [perEvent(first, last), perEvent(from, last)];
    verdicts.push({
      what,
      found: `${late.toFixed(0)} B in the last third, ${all.toFixed(0)} B in all`,
      bound,
      ok: late <= all * DISK_GROWTH_MAX,
    });
  }
  const beside = store.map(({ part_bytes, disk_bytes }) => ({
    part_bytes,
    bytes: (disk_bytes['clickhouse'] ?? NaN) - part_bytes,
  }));
  verdicts.push({
    what: 'disk of the store beside its active parts',
    found:
      store.length === 0
        ? 'not seen'
        : `${(Math.max(...beside.map(({ bytes }) => bytes)) / MIB).toFixed(0)} MiB at most`,
    bound: `≤ ${DISK_BESIDE_MAX_BYTES / MIB} MiB or ${DISK_BESIDE_MAX_SHARE * 100} % of them`,
    ok:
      store.length === 0
        ? null
        : beside.every(
            ({ bytes, part_bytes }) => bytes <= Math.max(DISK_BESIDE_MAX_BYTES, part_bytes * DISK_BESIDE_MAX_SHARE),
          ),
  });
  return verdicts;
}

function flowVerdicts(samples: readonly Sample[], outcome: Outcome): Verdict[] {
  const logs = finite(samples, ({ stream_bytes }) => stream_bytes['INGEST'] ?? NaN).map(([, bytes]) => bytes);
  const log = Math.max(0, ...logs);
  const lags = finite(samples, ({ lag_seconds }) => lag_seconds)
    .map(([, lag]) => lag)
    .sort((a, b) => a - b);
  const middle = lags[Math.floor(lags.length / 2)];
  return [
    {
      what: 'acknowledged = landed',
      found: `${outcome.acknowledged.toLocaleString('en-US')} acknowledged, ${outcome.landed.toLocaleString('en-US')} landed`,
      bound: outcome.abandoned === 0 ? 'equal' : `equal, or up to ${outcome.abandoned} more that were given up`,
      ok: outcome.landed >= outcome.acknowledged && outcome.landed <= outcome.acknowledged + outcome.abandoned,
    },
    {
      what: 'answers that a good request must not have',
      found:
        outcome.faults.length === 0
          ? 'none'
          : `${outcome.faults.length}: ${[...new Set(outcome.faults)].slice(0, 3).join('; ')}`,
      bound: 'none',
      ok: outcome.faults.length === 0,
    },
    {
      what: 'lag, in the middle of all samples',
      found: middle === undefined ? 'not seen' : `${middle.toFixed(1)} s; most ${(lags.at(-1) ?? NaN).toFixed(1)} s`,
      bound: `≤ ${LAG_SECONDS_MAX} s`,
      ok: middle === undefined ? null : middle <= LAG_SECONDS_MAX,
    },
    {
      what: 'bytes of the ingest log',
      found: logs.length === 0 ? 'not seen' : `${(log / MIB).toFixed(0)} MiB at most`,
      bound: `≤ ${(outcome.log_bytes_max / MIB).toFixed(0)} MiB`,
      ok: logs.length === 0 ? null : log <= outcome.log_bytes_max,
    },
  ];
}

/** Finds processes that ended by themselves: more lives than restarts explain. */
function livesVerdict(samples: readonly Sample[], { restarts }: Outcome): Verdict {
  const lives = new Set(samples.flatMap(({ processes }) => processes.map(({ pid, part }) => `${part} ${pid}`)));
  const parts = partsOf(samples).filter((part) => part !== 'other');
  const named = [...lives].filter((life) => !life.startsWith('other')).length;
  const unasked = Math.max(0, named - parts.length - restarts);
  return { what: 'processes that ended by themselves', found: String(unasked), bound: '0', ok: unasked === 0 };
}

/** Returns all verdicts of the run. */
export function verdictsOf(samples: readonly Sample[], outcome: Outcome): Verdict[] {
  const parts = partsOf(samples).filter((part) => part !== 'other');
  return [
    ...flowVerdicts(samples, outcome),
    livesVerdict(samples, outcome),
    ...parts.map((part) => memoryVerdict(samples, part)),
    ...parts.map((part) => descriptorVerdict(samples, part)),
    partsVerdict(samples),
    ...diskVerdicts(samples),
  ];
}

/** Returns true when the run has failed. */
export const isBreach = (verdicts: readonly Verdict[]): boolean => verdicts.some(({ ok }) => ok === false);
