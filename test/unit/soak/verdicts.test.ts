import { describe, expect, it } from 'vitest';
import { metricSamples, serviceFigures, type Sample } from '../../soak/figures.ts';
import { commonSlope, isBreach, verdictsOf, type Outcome, type Verdict } from '../../soak/verdicts.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const HOUR = 3600;

interface Shape {
  /** MiB of the worker at a second of its life. */
  worker?: (lifeS: number) => number;
  descriptors?: (lifeS: number) => number;
  /** Seconds after which a new worker starts. */
  lifeS?: number;
  hours?: number;
  parts?: number;
  /** Bytes of the store's folder for a number of events. */
  disk?: (events: number) => number;
  log?: number;
  ids?: (lifeS: number) => number;
}

const RATE = 1000;

function samplesOf({
  worker = () => 400,
  descriptors = () => 50,
  lifeS = Infinity,
  hours = 2,
  parts = 30,
  disk = (events) => events * 400,
  log = GIB,
  ids = () => 0,
}: Shape = {}): Sample[] {
  return Array.from({ length: (hours * HOUR) / 10 }, (_, index): Sample => {
    const at_s = index * 10;
    const life = lifeS === Infinity ? 0 : Math.floor(at_s / lifeS);
    const inLife = lifeS === Infinity ? at_s : at_s % lifeS;
    const landed = at_s * RATE;
    return {
      at_s,
      restarts: 0,
      acknowledged: landed,
      retries: 0,
      ack_p50_ms: 5,
      ack_p99_ms: 20,
      landed,
      processes: [
        { part: 'worker', pid: 100 + life, rss_bytes: worker(inLife) * MIB, descriptors: descriptors(inLife) },
      ],
      heap_bytes: {},
      event_loop_p99_ms: {},
      lag_seconds: 0.3,
      lag_messages: 2,
      texts_waiting: 0,
      dedupe_ids: ids(inLife),
      dedupe_bytes: ids(inLife) * 27,
      stream_bytes: { INGEST: log },
      stream_messages: {},
      parts: { spans: parts },
      part_bytes: disk(landed),
      disk_bytes: { clickhouse: disk(landed) + 10 * MIB },
    };
  });
}

const OUTCOME: Outcome = {
  acknowledged: 10,
  landed: 10,
  abandoned: 0,
  faults: [],
  log_bytes_max: 2 * GIB,
  restarts: 0,
};
const judged = (shape: Shape, outcome: Partial<Outcome> = {}): Verdict[] =>
  verdictsOf(samplesOf(shape), { ...OUTCOME, ...outcome });
const verdict = (verdicts: readonly Verdict[], what: RegExp): Verdict => {
  const found = verdicts.find((one) => what.test(one.what));
  if (found === undefined) throw new Error(`no verdict ${String(what)}`);
  return found;
};

describe('slope over several lives', () => {
  it('the slope over several lives is that of each life, whatever its height', () => {
    const life = (height: number): [number, number][] => Array.from({ length: 10 }, (_, x) => [x, height + 3 * x]);
    expect(commonSlope([life(0), life(500), life(-20)])).toBeCloseTo(3, 9);
  });
});

describe('verdicts', () => {
  it('the verdicts pass a run in which nothing grows but the data', () => {
    const verdicts = judged({});
    expect(verdicts.filter(({ ok }) => ok !== true)).toEqual([]);
    expect(isBreach(verdicts)).toBe(false);
  });

  it('the verdicts find a leak, also where restarts cut it into lives', () => {
    expect(verdict(judged({ worker: (s) => 400 + (50 * s) / HOUR }), /memory of worker/).ok).toBe(false);
    expect(
      verdict(judged({ worker: (s) => 400 + (50 * s) / HOUR, lifeS: 2400 }, { restarts: 2 }), /memory of worker/).ok,
    ).toBe(false);
  });

  it('the verdicts count a warm-up after each start as no leak', () => {
    const warming = (s: number): number => 200 + 200 * Math.min(1, s / 500);
    expect(verdict(judged({ worker: warming, lifeS: 2400 }, { restarts: 2 }), /memory of worker/).ok).toBe(true);
  });

  it('the verdicts ignore the window of ids, which grows by design', () => {
    const ids = (s: number): number => s * RATE;
    const worker = (s: number): number => 400 + (s * RATE * 20) / MIB;
    expect(verdict(judged({ worker, ids }), /memory of worker/).ok).toBe(true);
    expect(verdict(judged({ worker }), /memory of worker/).ok).toBe(false);
  });

  it('the verdicts find descriptors that are never closed', () => {
    expect(verdict(judged({ descriptors: (s) => 50 + s / 60 }), /descriptors of worker/).ok).toBe(false);
  });

  it('the verdicts find too many parts, a full log, and disk that the data does not explain', () => {
    expect(verdict(judged({ parts: 900 }), /active parts/).ok).toBe(false);
    expect(verdict(judged({ log: 3 * GIB }), /ingest log/).ok).toBe(false);
    expect(verdict(judged({ disk: (events) => events * 400 + events ** 2 / 10_000 }), /for an event/).ok).toBe(false);
  });

  it('the verdicts find lost and doubled events, and unjustified rejections', () => {
    expect(verdict(judged({}, { landed: 9 }), /acknowledged = landed/).ok).toBe(false);
    expect(verdict(judged({}, { landed: 11 }), /acknowledged = landed/).ok).toBe(false);
    expect(verdict(judged({}, { landed: 11, abandoned: 1 }), /acknowledged = landed/).ok).toBe(true);
    expect(verdict(judged({}, { faults: ['app: 422'] }), /good request/).ok).toBe(false);
  });

  it('the verdicts find a process that restarted though nobody killed it', () => {
    expect(verdict(judged({ lifeS: 2400 }), /ended by themselves/)).toMatchObject({ ok: false, found: '2' });
    expect(verdict(judged({ lifeS: 2400 }, { restarts: 2 }), /ended by themselves/).ok).toBe(true);
  });

  it('the verdicts are empty where the run was too short', () => {
    const verdicts = judged({ hours: 0.2, worker: (s) => 400 + s });
    expect(verdict(verdicts, /memory of worker/).ok).toBeNull();
    expect(verdict(verdicts, /descriptors/).ok).toBeNull();
    expect(isBreach(verdicts)).toBe(false);
  });
});

describe('figures', () => {
  const text = [
    '# HELP millrace_stream_bytes Bytes',
    'millrace_stream_bytes{stream="INGEST",process="api"} 2048',
    'nodejs_heap_size_used_bytes{process="worker-1"} 5000',
    'nodejs_eventloop_lag_p99_seconds{process="api"} 0.012',
    'millrace_pipeline_lag_seconds{process="worker-1"} 0.5',
    'millrace_pipeline_lag_seconds{process="worker-2"} 1.5',
    'up 1',
  ].join('\n');

  it('figures are read from the metrics of all processes', () => {
    expect(serviceFigures(text)).toMatchObject({
      stream_bytes: { INGEST: 2048 },
      heap_bytes: { 'worker-1': 5000 },
      event_loop_p99_ms: { api: 12 },
      lag_seconds: 1.5,
    });
    expect([...metricSamples(text)]).toHaveLength(6);
  });

  it('figures are unknown where the service does not answer', () => {
    expect(serviceFigures('').lag_seconds).toBeNaN();
  });
});
