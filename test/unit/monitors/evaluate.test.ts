// How the state of a monitor follows from what was measured.
import { describe, expect, it } from 'vitest';
import {
  afterFailure,
  afterMeasured,
  freshState,
  GROUP_KEPT_MS,
  GROUPS_KEPT_MAX,
  HISTORY_MAX,
  type Measured,
  withoutGroups,
} from '../../../pipeline/domain/monitors/evaluate.ts';
import { wouldAlert } from '../../../pipeline/domain/monitors/would_alert.ts';
import { mailOfNotice } from '../../../pipeline/domain/monitors/mail.ts';
import type { MonitorRecord, MonitorState } from '../../../schemas/records/monitor.ts';

const MINUTE_MS = 60_000;
const START = Date.parse('2026-03-10T12:00:03Z');

const aMonitor = (over: Partial<MonitorRecord> = {}): MonitorRecord => ({
  org_id: 'org_a',
  monitor_id: 'mon_1',
  name: 'Slow',
  query: { view: 'spans', measures: [{ measure: 'duration_ms', agg: 'p95' }], filters: [] },
  group_by: ['model'],
  window_minutes: 10,
  threshold: { above: 100 },
  for_minutes: 0,
  channels: [],
  severity: 'critical',
  enabled: true,
  muted_until: null,
  created_at: '2026-03-10T00:00:00Z',
  updated_at: '2026-03-10T00:00:00Z',
  ...over,
});
const found = (values: Record<string, number | null>, over: Partial<Measured> = {}): Measured => ({
  values: Object.entries(values).map(([group, value]) => ({ group, value })),
  missing: null,
  truncated: false,
  ...over,
});
/** Returns the state after one evaluation a minute. */
function after(monitor: MonitorRecord, minutes: readonly Measured[]): MonitorState {
  return minutes.reduce(
    (state, measured, minute) => afterMeasured(state, monitor, measured, START + minute * MINUTE_MS),
    freshState(monitor),
  );
}
const events = ({ outbox }: MonitorState): [string, unknown, unknown, unknown][] =>
  outbox.map(({ event, payload }): [string, unknown, unknown, unknown] => [
    event,
    payload['group'],
    payload['value'],
    payload['reason'],
  ]);
const states = ({ groups }: MonitorState): Record<string, string> =>
  Object.fromEntries(groups.map(({ group, state }): [string, string] => [String(group), state]));

describe('the state of a monitor', () => {
  it('changes once when a value passes the threshold, and once when it is back', () => {
    const state = after(aMonitor(), [
      found({ a: 100 }),
      found({ a: 101 }),
      found({ a: 500 }),
      found({ a: 99 }),
      found({ a: 1 }),
    ]);
    expect(events(state)).toEqual([
      ['monitor.alerting', { model: 'a' }, 101, undefined],
      ['monitor.resolved', { model: 'a' }, 99, 'ok'],
    ]);
  });

  it('alerts below a threshold of `below`', () => {
    const state = after(aMonitor({ threshold: { below: 5 } }), [found({ a: 5, b: 4 })]);
    expect(states(state)).toEqual({ a: 'ok', b: 'alerting' });
  });

  it('alerts only after the value was past the threshold for for_minutes without a break', () => {
    const monitor = aMonitor({ for_minutes: 2 });
    const high = found({ a: 200 });
    expect(states(after(monitor, [high, high]))).toEqual({ a: 'ok' });
    expect(states(after(monitor, [high, found({ a: 1 }), high, high]))).toEqual({ a: 'ok' });
    expect(states(after(monitor, [high, high, high]))).toEqual({ a: 'alerting' });
  });

  it('counts whole minutes, whatever second an evaluation begins in', () => {
    const monitor = aMonitor({ for_minutes: 1 });
    const first = afterMeasured(freshState(monitor), monitor, found({ a: 200 }), START + 50_000);
    expect(states(afterMeasured(first, monitor, found({ a: 200 }), START + 58_000))).toEqual({ a: 'alerting' });
  });

  it('has no data without a value, and resolves an alert then', () => {
    const state = after(aMonitor(), [found({ a: 200 }), found({ a: null })]);
    expect(states(state)).toEqual({ a: 'no_data' });
    expect(events(state).at(-1)).toEqual(['monitor.resolved', { model: 'a' }, null, 'no_data']);
  });

  it('gives a group without rows the value 0 of a sum', () => {
    const monitor = aMonitor({ threshold: { below: 1 } });
    const state = after(monitor, [found({ a: 3 }), found({}, { missing: 0 })]);
    expect(states(state)).toEqual({ a: 'alerting' });
  });

  it('forgets a group that had no data for a day, and resolves its alert', () => {
    const monitor = aMonitor({ threshold: { below: 1 } });
    const silent = after(monitor, [found({ a: 3 }), found({}, { missing: 0 })]);
    const state = afterMeasured(silent, monitor, found({}, { missing: 0 }), START + GROUP_KEPT_MS);
    expect(state.groups).toEqual([]);
    expect(events(state).at(-1)).toEqual(['monitor.resolved', { model: 'a' }, 0, 'no_data']);
  });

  it('keeps alerting groups that others outdid, and at most the maximum of groups', () => {
    const monitor = aMonitor();
    const many = (from: number) =>
      found(Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`g${from + n}`, 200])), { truncated: true });
    const state = after(monitor, [many(0), many(100), many(200)]);
    expect(state.groups).toHaveLength(GROUPS_KEPT_MAX);
    expect(events(state).filter(([event]) => event === 'monitor.resolved')).toHaveLength(100);
  });

  it('stays as it was when it cannot be evaluated, and says why', () => {
    const monitor = aMonitor();
    const alerting = after(monitor, [found({ a: 200 })]);
    const failed = afterFailure(alerting, monitor, 'too slow', START + MINUTE_MS);
    expect([failed.error, states(failed), failed.outbox]).toEqual(['too slow', { a: 'alerting' }, alerting.outbox]);
    expect(afterMeasured(failed, monitor, found({ a: 200 }), START + 2 * MINUTE_MS).error).toBeNull();
  });

  it('starts over when the query is another, and keeps its alerts when the threshold is', () => {
    const alerting = after(aMonitor(), [found({ a: 200 })]);
    const kept = afterMeasured(alerting, aMonitor({ threshold: { above: 150 } }), found({ a: 200 }), START + MINUTE_MS);
    expect(kept.outbox).toEqual(alerting.outbox);
    const fresh = afterMeasured(alerting, aMonitor({ group_by: ['agent_id'] }), found({ a: 200 }), START + MINUTE_MS);
    expect(events(fresh)).toEqual([
      ['monitor.alerting', { model: 'a' }, 200, undefined],
      ['monitor.resolved', { model: 'a' }, 200, 'changed'],
      ['monitor.alerting', { agent_id: 'a' }, 200, undefined],
    ]);
  });

  it('holds the notice of a new alert back while it is muted, and sends it when the mute ends', () => {
    const muted_until = new Date(START + 2 * MINUTE_MS).toISOString();
    const monitor = aMonitor({ muted_until });
    const high = found({ a: 200 });
    expect(events(after(monitor, [high, high]))).toEqual([]);
    const ended = after(monitor, [high, high, high, high]);
    expect(events(ended)).toEqual([['monitor.alerting', { model: 'a' }, 200, undefined]]);
    expect(ended.outbox[0]?.payload['alerting_at']).toBe(new Date(START).toISOString());
  });

  it('reports no alert that began and ended while it was muted, and the end of one that was reported before', () => {
    const high = found({ a: 200 });
    const muted = aMonitor({ muted_until: new Date(START + 60 * MINUTE_MS).toISOString() });
    const silent = after(muted, [high, found({ a: 1 })]);
    expect([silent.outbox, silent.history.map(({ event, notified }) => [event, notified])]).toEqual([
      [],
      [
        ['monitor.alerting', false],
        ['monitor.resolved', false],
      ],
    ]);
    const reported = after(aMonitor(), [high]);
    const resolved = afterMeasured(reported, muted, found({ a: 1 }), START + MINUTE_MS);
    expect(events(resolved).map(([event]) => event)).toEqual(['monitor.alerting', 'monitor.resolved']);
  });

  it('keeps the newest changes', () => {
    const minutes = Array.from({ length: 2 * HISTORY_MAX }, (_, at) => found({ a: at % 2 === 0 ? 200 : 1 }));
    const { history } = after(aMonitor(), minutes);
    expect(history).toHaveLength(HISTORY_MAX);
    expect(history.at(-1)).toEqual({
      event: 'monitor.resolved',
      group: { model: 'a' },
      value: 1,
      reason: 'ok',
      at: new Date(START + (2 * HISTORY_MAX - 1) * MINUTE_MS).toISOString(),
      notified: true,
    });
  });

  it('gives every change an id of its own, and the same change the same id', () => {
    const minutes = [found({ a: 200 }), found({ a: 1 }), found({ a: 200 })];
    const ids = after(aMonitor(), minutes).outbox.map(({ event_id }) => event_id);
    expect(new Set(ids).size).toBe(3);
    expect(after(aMonitor(), minutes).outbox.map(({ event_id }) => event_id)).toEqual(ids);
  });

  it('resolves everything when the monitor is disabled', () => {
    const state = withoutGroups(after(aMonitor(), [found({ a: 200, b: 1 })]), 'disabled', START);
    expect(state.groups).toEqual([]);
    expect(events(state).at(-1)).toEqual(['monitor.resolved', { model: 'a' }, 200, 'disabled']);
  });
});

describe('the alerts that a monitor would have sent', () => {
  const instants = { first: START, step: 5 * MINUTE_MS };
  const time = (at: number): string => new Date(START + at * 5 * MINUTE_MS).toISOString();

  it('are those of each group, the newest first, without an end where it still alerts', () => {
    const groups = [
      { group: 'a', values: [1, 200, 300, 1, 400] },
      { group: 'b', values: [null, null, 101, null, 1] },
    ];
    expect(wouldAlert(aMonitor(), groups, instants)).toEqual([
      { group: { model: 'a' }, from: time(4), until: null, value: 400 },
      { group: { model: 'b' }, from: time(2), until: time(3), value: 101 },
      { group: { model: 'a' }, from: time(1), until: time(3), value: 200 },
    ]);
  });

  it('begin once a value was past the threshold for for_minutes', () => {
    const groups = [{ group: null, values: [200, 200, 200, 1] }];
    const monitor = aMonitor({ group_by: [], for_minutes: 10 });
    expect(wouldAlert(monitor, groups, instants)).toEqual([{ group: {}, from: time(2), until: time(3), value: 200 }]);
    expect(wouldAlert(aMonitor({ group_by: [] }), [], instants)).toEqual([]);
  });
});

describe('the mail of a monitor', () => {
  it('names the monitor, the group, the value and the threshold', () => {
    const monitor = aMonitor();
    const { outbox } = after(monitor, [found({ a: 200 }), found({ a: 7 })]);
    const [alerting, resolved] = outbox.map((notice) => mailOfNotice(monitor, notice, 'ann@example.com'));
    expect(alerting?.subject).toBe('[critical] Slow (model a)');
    expect(alerting?.text).toContain('Value: 200 (p95 of duration_ms over 10 minutes).\nThreshold: above 100.');
    expect(resolved?.subject).toBe('[resolved] Slow (model a)');
    expect(resolved?.text).toContain('Reason: the value is within the threshold.');
    expect(resolved?.mail_id).not.toBe(alerting?.mail_id);
  });
});
