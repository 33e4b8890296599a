// "What needs you" on the home page, and the budget that is nearest its limit.
import { describe, expect, it } from 'vitest';
import {
  anomalyNeeds,
  deadLetterNeeds,
  evalNeeds,
  grantNeeds,
  incidentNeeds,
  judgeNeeds,
  monitorNeeds,
  type Places,
} from '../../../api/portal/web/screens/home/needs.ts';
import { nearestLimit } from '../../../api/portal/web/screens/home/nearest_limit.ts';

const now = Date.parse('2026-11-23T12:00:00Z');
const hoursAgo = (hours: number): string => new Date(now - hours * 3_600_000).toISOString();
const all: Places = { root: '/o/x', hasPage: () => true };
const none: Places = { root: '/o/x', hasPage: () => false };

type Eval = Parameters<typeof evalNeeds>[0][number];
const anEval = (eval_id: string, mean_score: number, hours: number, more: Partial<Eval> = {}): Eval => ({
  eval_id,
  judge_id: 'jdg_1',
  judge_version: 1,
  status: 'complete',
  queued_traces: 10,
  progress: { done: 10, total: 10 },
  stats: { total: 10, passed: 5, warned: 0, failed: 5, errors: 0, mean_score, p50_score: mean_score },
  started_at: hoursAgo(hours + 1),
  ended_at: hoursAgo(hours),
  error: null,
  ...more,
});

describe('what needs somebody', () => {
  const incident = {
    incident_id: 'inc_1',
    agent_id: 'planner',
    error: 'payment declined',
    severity: 'critical',
    trace_count: 61,
    opened_at: hoursAgo(1),
  } as Parameters<typeof incidentNeeds>[0][number];

  it('an incident leads to its page, or to the failed traces of its agent before there is one', () => {
    expect(incidentNeeds([incident], all)[0]).toMatchObject({
      tone: 'critical',
      text: 'payment declined',
      detail: 'planner, 61 traces',
      href: '/o/x/incidents/inc_1',
    });
    const [line] = incidentNeeds([incident], none);
    const query = new URLSearchParams({ outcome: 'error,timeout', since: incident.opened_at, agent_id: 'planner' });
    expect(line?.href).toBe(`/o/x/traces?${query.toString()}`);
  });

  it('a monitor that alerts leads to its page, with the groups that alert', () => {
    const group = (name: string, state: 'alerting' | 'ok', hours: number) => ({
      group: { model: name },
      state,
      value: 1,
      since: hoursAgo(hours),
    });
    const monitor = {
      monitor_id: 'mon_1',
      name: 'Slow calls',
      severity: 'critical',
      group_by: ['model'],
      groups: [group('a', 'alerting', 2), group('b', 'alerting', 3), group('c', 'ok', 9)],
    } as unknown as Parameters<typeof monitorNeeds>[0][number];
    expect(monitorNeeds([monitor], all)).toEqual([
      {
        key: 'mon_1',
        kind: 'Monitor',
        tone: 'critical',
        text: 'Slow calls',
        detail: '2 of 3 groups alert',
        href: '/o/x/monitors/mon_1',
        action: 'Open the monitor',
        at: hoursAgo(3),
      },
    ]);
    expect(monitorNeeds([monitor], none)).toEqual([]);
  });

  it('an anomaly is news for three days', () => {
    const anomaly = {
      anomaly_id: 'anom_1',
      date: '2026-11-22',
      detected_at: hoursAgo(71),
      kind: 'z_score' as const,
      z: 5,
      expected_usd: 2,
      actual_usd: 50,
      attributed_to: { model: 'o3', agent_id: null },
    };
    expect(anomalyNeeds([anomaly], none, now)).toMatchObject([
      { text: '2026-11-22 cost $50.00 instead of $2.00', detail: 'o3' },
    ]);
    expect(anomalyNeeds([{ ...anomaly, detected_at: hoursAgo(73) }], none, now)).toEqual([]);
  });

  it('a judge stands there while the mean of its scores is under its threshold', () => {
    const judge = (judge_id: string, enabled = true) =>
      ({ judge_id, name: judge_id, enabled, threshold: { pass: 0.8, warn: 0.6 } }) as Parameters<
        typeof judgeNeeds
      >[0][number];
    const means = new Map([
      ['low', { mean: 0.51234, scores: 7 }],
      ['warned', { mean: 0.6, scores: 7 }],
      ['off', { mean: 0, scores: 7 }],
    ]);
    const lines = judgeNeeds([judge('low'), judge('warned'), judge('off', false), judge('silent')], means, all);
    expect(lines).toMatchObject([
      { text: 'low scores 0.512 on average, under its threshold of 0.6', href: '/o/x/judges/low' },
    ]);
    expect(judgeNeeds([judge('low')], means, none)[0]?.href).toBe('/o/x/traces?judge_id=low&verdict=fail');
  });

  it('an eval stands there when its mean fell against the one before, by at least the drop of the policy', () => {
    const evals = [anEval('new', 0.4, 2), anEval('old', 0.9, 30), anEval('older', 1, 50)];
    expect(evalNeeds(evals, 0.5, all, now)).toMatchObject([
      { text: 'The mean score of an eval fell from 0.9 to 0.4', href: '/o/x/evals/compare/old/new' },
    ]);
    expect(evalNeeds(evals, 0.51, all, now)).toEqual([]);
    expect(evalNeeds(evals, 0.5, none, now)).toEqual([]);
  });

  it('an eval is compared with one of the same judge and dataset only, and is news for three days', () => {
    const other = anEval('old', 0.9, 30, { dataset_id: 'ds_1' });
    expect(evalNeeds([anEval('new', 0.4, 2), other], 0.1, all, now)).toEqual([]);
    expect(evalNeeds([anEval('new', 0.4, 80), anEval('old', 0.9, 90)], 0.1, all, now)).toEqual([]);
    expect(evalNeeds([anEval('new', 0.9, 2), anEval('old', 0.9, 3)], 0, all, now)).toEqual([]);
  });

  it('dead letters and grants that end within seven days have a line each', () => {
    expect(deadLetterNeeds(0, all)).toEqual([]);
    expect(deadLetterNeeds(1, all)).toMatchObject([{ text: '1 event was not delivered' }]);
    expect(deadLetterNeeds(2, none)).toEqual([]);
    const grant = (hours: number) => ({
      grant_id: 'g',
      resource: { type: 'trace', id: 'trc_1' },
      expires_at: hoursAgo(-hours),
    });
    expect(grantNeeds([grant(50)], all, now)).toMatchObject([
      { text: 'Your access to the trace trc_1 ends in 2\u00a0d', href: '/o/x/traces/trc_1' },
    ]);
    expect(grantNeeds([grant(170), grant(-1)], all, now)).toEqual([]);
  });
});

describe('the budget nearest its limit', () => {
  const resource = (used: number, hard_limit: number | null, percentage: number) => ({
    used,
    hard_limit,
    soft_limit: null,
    percentage,
    status: percentage >= 100 ? ('hard_exceeded' as const) : ('ok' as const),
  });

  it('is the resource with the largest share of its limit', () => {
    expect(
      nearestLimit({
        tokens: resource(40, 100, 40),
        storage_mb: resource(9, 10, 90),
        sandbox_seconds: resource(5, null, 0),
        cost_usd: resource(2, 4, 50),
      }),
    ).toEqual({ resource: 'storage_mb', used: 9, limit: 10, percentage: 90, exceeded: false });
  });

  it('is none where no limit is set', () => {
    const free = resource(5, null, 0);
    expect(nearestLimit({ tokens: free, storage_mb: free, sandbox_seconds: free, cost_usd: free })).toBeNull();
  });
});
