import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  clusterOf,
  CRITICAL_TRACES,
  firstSpell,
  incidentEventId,
  incidentIdOf,
  isQuiet,
  lookFrom,
  progressOf,
  QUIET_MS,
  severityOf,
  type Spell,
} from '../../../pipeline/domain/incidents/incidents.ts';

const MINUTE = 60_000;
const minutes = (...times: number[]): number[] => times.map((time) => time * MINUTE);

describe('when failing traces are an incident', () => {
  it.each<[string, number[], [number, number] | null]>([
    ['none', [], null],
    ['four', [0, 1, 2, 3], null],
    ['five within a quarter of an hour', [0, 3, 6, 9, 15], [0, 15]],
    ['five within a little more', [0, 3, 6, 9, 15.001], null],
    ['five of six', [0, 10, 11, 12, 16, 24], [10, 24]],
    ['five at once', [7, 7, 7, 7, 7], [7, 7]],
    ['more, up to half an hour apart', [0, 1, 2, 3, 4, 33, 62], [0, 62]],
    ['more, after half an hour', [0, 1, 2, 3, 4, 34], [0, 4]],
    ['a slow drip', [0, 10, 20, 30, 40, 50, 60], null],
  ])('failing traces form an incident: %s: %j', (_name, times, spell) => {
    expect(firstSpell(minutes(...times))).toEqual(
      spell === null ? null : { from_ms: spell[0] * MINUTE, last_ms: spell[1] * MINUTE },
    );
  });

  it('an incident is over half an hour after its last trace, to the millisecond', () => {
    const open = { from_ms: 0, last_ms: 4 * MINUTE };
    expect(isQuiet(open, 4 * MINUTE + QUIET_MS - 1)).toBe(false);
    expect(isQuiet(open, 4 * MINUTE + QUIET_MS)).toBe(true);
    expect(progressOf(open, [4 * MINUTE + QUIET_MS - 1])).toMatchObject({ ended: false });
    expect(progressOf(open, [4 * MINUTE + QUIET_MS])).toEqual({ ...open, ended: true });
  });

  it('an incident is critical from fifty traces on', () => {
    expect([5, CRITICAL_TRACES - 1, CRITICAL_TRACES, 1000].map(severityOf)).toEqual([
      'warning',
      'warning',
      'critical',
      'critical',
    ]);
    expect(CRITICAL_TRACES).toBe(50);
  });
});

describe('an open incident', () => {
  const open = { from_ms: 20 * MINUTE, last_ms: 24 * MINUTE };
  const own = [20, 21, 22, 23, 24];

  it('later traces continue an open incident', () => {
    expect(progressOf(open, minutes(...own, 40, 60))).toEqual({
      from_ms: open.from_ms,
      last_ms: 60 * MINUTE,
      ended: false,
    });
    expect(progressOf(open, minutes(60))).toEqual({ ...open, ended: true });
  });

  it('an earlier trace that arrives late begins an open incident when it is one of five', () => {
    expect(progressOf(open, minutes(19, ...own))).toMatchObject({ from_ms: 19 * MINUTE });
    expect(progressOf(open, minutes(5, 6, 7, 8, 9, ...own))).toMatchObject({ from_ms: 5 * MINUTE });
    expect(progressOf(open, minutes(4, ...own))).toMatchObject({ from_ms: open.from_ms });
  });
});

/** Processes traces in batches, looking back no further than necessary. */
function keep(batches: readonly (readonly number[])[]): Spell | null {
  const counted: number[] = [];
  let open: Spell | null = null;
  for (const batch of batches) {
    counted.push(...batch);
    counted.sort((a, b) => a - b);
    const from: number = lookFrom(open, Math.min(...batch));
    const times = counted.filter((at) => at >= from);
    if (open === null) open = firstSpell(times);
    else {
      const { from_ms, last_ms } = progressOf(open, times);
      open = { from_ms, last_ms };
    }
  }
  return open;
}

it('the same traces are the same incident, in any order and batches', () => {
  // Less than half an hour in all, so that no order ends the incident in between.
  const traces = fc.array(fc.integer({ min: 0, max: QUIET_MS - 1 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(
      traces.chain((times) =>
        fc.tuple(
          fc.constant(times),
          fc.shuffledSubarray([...times.keys()], { minLength: times.length }),
          fc.integer({ min: 1, max: 10 }),
        ),
      ),
      ([times, order, size]) => {
        const shuffled = order.map((index) => times[index] ?? 0);
        const batches = Array.from({ length: Math.ceil(shuffled.length / size) }, (_, at) =>
          shuffled.slice(at * size, (at + 1) * size),
        );
        expect(keep(batches)).toEqual(firstSpell(times.toSorted((a, b) => a - b)));
      },
    ),
    { numRuns: 2000 },
  );
});

describe('a cluster', () => {
  it('a cluster is an agent, a root span and a normalized error', () => {
    const one = clusterOf('agent', 'run', 'no seat on flight HAT030');
    expect(one).toEqual({
      cluster_id: expect.stringMatching(/^clu_[0-9a-f]{16}$/) as string,
      error: 'no seat on flight #',
    });
    expect(clusterOf('agent', 'run', 'no seat on flight HAT271')).toEqual(one);
    const others = [
      clusterOf('other', 'run', 'no seat on flight 1'),
      clusterOf('agent', 'walk', 'no seat on flight 1'),
      clusterOf('agent', 'run', 'no seat'),
    ];
    expect(new Set([one, ...others].map(({ cluster_id }) => cluster_id)).size).toBe(4);
  });

  it('a cluster has incidents with ids of their own, each with two events', () => {
    const ids = [
      incidentIdOf('org_a', 'clu_1', 1),
      incidentIdOf('org_b', 'clu_1', 1),
      incidentIdOf('org_a', 'clu_2', 1),
      incidentIdOf('org_a', 'clu_1', 2),
    ];
    expect(new Set(ids).size).toBe(4);
    for (const id of ids) expect(id).toMatch(/^inc_[0-9a-f]{16}$/);
    const [id = ''] = ids;
    expect(incidentEventId('incident.created', id)).toMatch(/^evt_[0-9a-f]{16}$/);
    expect(incidentEventId('incident.created', id)).not.toBe(incidentEventId('incident.resolved', id));
  });
});
