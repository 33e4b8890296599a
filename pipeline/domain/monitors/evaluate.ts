// Decides the state of a monitor from the values of its groups. In: the previous state, the
// definition, and the values that were measured, or the reason why nothing could be. Out: the next
// state, with a notice for each change in its outbox. Pure: the same input gives the same ids, so a
// notice that is sent twice after a crash is recognized as one.
import type {
  MONITOR_RESOLUTIONS,
  MonitorGroupState,
  MonitorNotice,
  MonitorRecord,
  MonitorState,
} from '../../../schemas/records/monitor.ts';
import { hex16 } from '../traces/ids.ts';

/** Groups that one evaluation measures: the most extreme ones. */
export const GROUPS_MAX = 100;
/** Groups that a state keeps: those measured, and those without data lately. */
export const GROUPS_KEPT_MAX = 200;
/** How long a group without data is kept. */
export const GROUP_KEPT_MS = 24 * 3_600_000;
/** Changes that a state keeps. */
export const HISTORY_MAX = 100;
const MINUTE_MS = 60_000;

export interface Measured {
  values: readonly { group: string | null; value: number | null }[];
  /** Value of a group without rows: 0 for sums, null for averages and percentiles. */
  missing: number | null;
  /** True when there were more groups than GROUPS_MAX. */
  truncated: boolean;
}

type Resolution = (typeof MONITOR_RESOLUTIONS)[number];

/** Returns the state of a monitor that was never evaluated. */
export function freshState(monitor: MonitorRecord): MonitorState {
  const { org_id, monitor_id } = monitor;
  return {
    org_id,
    monitor_id,
    monitor,
    evaluated_at: null,
    error: null,
    truncated: false,
    groups: [],
    changes: 0,
    history: [],
    outbox: [],
  };
}

/** Returns true when two definitions measure the same, so that the state of one is that of the other. */
export const measuresSame = (a: MonitorRecord, b: MonitorRecord): boolean =>
  JSON.stringify([a.query, a.group_by]) === JSON.stringify([b.query, b.group_by]);

/**
 * Returns the state after values were measured.
 * @param now milliseconds since the epoch
 */
export function afterMeasured(
  before: MonitorState,
  monitor: MonitorRecord,
  measured: Measured,
  now: number,
): MonitorState {
  const start = measuresSame(before.monitor, monitor) ? before : withoutGroups(before, 'changed', now);
  const state: MonitorState = {
    ...start,
    monitor,
    evaluated_at: new Date(now).toISOString(),
    error: null,
    truncated: measured.truncated,
    groups: [],
    history: [...start.history],
    outbox: [...start.outbox],
  };
  const known = new Map(start.groups.map((group) => [group.group, group]));
  for (const { group, value } of measured.values) {
    state.groups.push(nextGroup(state, known.get(group), { group, value, seen_ms: now }, now));
    known.delete(group);
  }
  // Groups that were not measured: none of their rows is in the window, or others are more extreme.
  for (const group of [...known.values()].sort((a, b) => b.seen_ms - a.seen_ms)) {
    const kept = now - group.seen_ms < GROUP_KEPT_MS && state.groups.length < GROUPS_KEPT_MAX;
    if (kept && measured.truncated && group.state === 'alerting') state.groups.push(group);
    else if (kept && !measured.truncated)
      state.groups.push(nextGroup(state, group, { ...group, value: measured.missing }, now));
    else resolve(state, group, 'no_data', now);
  }
  return state;
}

/** Returns the state after an evaluation failed. It says why; the groups stay as they were. */
export function afterFailure(before: MonitorState, monitor: MonitorRecord, error: string, now: number): MonitorState {
  const start = measuresSame(before.monitor, monitor) ? before : withoutGroups(before, 'changed', now);
  return { ...start, monitor, evaluated_at: new Date(now).toISOString(), error };
}

/** Returns the state without groups; those that were alerting are resolved. */
export function withoutGroups(before: MonitorState, reason: Resolution, now: number): MonitorState {
  const state: MonitorState = {
    ...before,
    groups: [],
    error: null,
    truncated: false,
    history: [...before.history],
    outbox: [...before.outbox],
  };
  for (const group of before.groups) resolve(state, group, reason, now);
  return state;
}

interface Found {
  group: string | null;
  value: number | null;
  seen_ms: number;
}

/** Returns the next state of a group, and adds a notice where it begins or ends to alert. */
function nextGroup(
  state: MonitorState,
  before: MonitorGroupState | undefined,
  { group, value, seen_ms }: Found,
  now: number,
): MonitorGroupState {
  const { threshold, for_minutes } = state.monitor;
  const past = value !== null && isPast(value, threshold);
  const past_ms = past ? (before?.past_ms ?? now) : null;
  const isAlerting =
    past_ms !== null && (before?.state === 'alerting' || minuteOf(now) - minuteOf(past_ms) >= for_minutes * MINUTE_MS);
  const name = value === null ? 'no_data' : isAlerting ? 'alerting' : 'ok';
  const since_ms = before?.state === name ? before.since_ms : now;
  const next: MonitorGroupState = { group, state: name, value, since_ms, past_ms, seen_ms, notified: true };
  if (name === 'alerting') {
    const begins = before?.state !== 'alerting';
    const isMuted = isMutedAt(state.monitor, now);
    // An alert that a muted monitor did not report is reported when the mute ends.
    next.notified = (!begins && before.notified) || !isMuted;
    if (begins) remember(state, next, now, null);
    if (next.notified && (begins || !before.notified)) notify(state, next, now, null);
  } else if (before !== undefined) resolve(state, { ...before, value }, name, now);
  return next;
}

const isPast = (value: number, threshold: MonitorRecord['threshold']): boolean =>
  'above' in threshold ? value > threshold.above : value < threshold.below;

const isMutedAt = ({ muted_until }: MonitorRecord, now: number): boolean =>
  muted_until !== null && now < Date.parse(muted_until);

/** Evaluations begin some seconds into a minute; whole minutes make `for_minutes` exact. */
const minuteOf = (ms: number): number => Math.floor(ms / MINUTE_MS) * MINUTE_MS;

function resolve(state: MonitorState, group: MonitorGroupState, reason: Resolution, now: number): void {
  if (group.state !== 'alerting') return;
  remember(state, group, now, reason);
  // Who was told of the alert is told of its end, muted or not.
  if (group.notified) notify(state, group, now, reason);
}

/** Adds a change to the history. @param reason null when the group begins to alert */
function remember(
  state: MonitorState,
  { group, value, notified }: MonitorGroupState,
  now: number,
  reason: Resolution | null,
): void {
  const event = reason === null ? 'monitor.alerting' : 'monitor.resolved';
  const at = new Date(now).toISOString();
  state.history.push({ event, group: namedGroup(state.monitor, group), value, reason, at, notified });
  if (state.history.length > HISTORY_MAX) state.history.shift();
}

/** Returns the dimension and the value of a group; empty for a monitor without groups. */
export const namedGroup = ({ group_by: [dimension] }: MonitorRecord, group: string | null): Record<string, string> =>
  dimension === undefined || group === null ? {} : { [dimension]: group };

/** Adds a notice to the outbox. @param reason null when the group begins to alert */
function notify(state: MonitorState, group: MonitorGroupState, now: number, reason: Resolution | null): void {
  const { org_id, monitor_id, name, severity, threshold, window_minutes, for_minutes } = state.monitor;
  const event = reason === null ? 'monitor.alerting' : 'monitor.resolved';
  state.changes += 1;
  const payload = {
    event,
    org_id,
    monitor_id,
    name,
    severity,
    group: namedGroup(state.monitor, group.group),
    value: group.value,
    threshold,
    window_minutes,
    for_minutes,
    alerting_at: new Date(group.since_ms).toISOString(),
    ...(reason === null ? {} : { resolved_at: new Date(now).toISOString(), reason }),
  };
  const notice: MonitorNotice = {
    event_id: `evt_${hex16(`${event}\n${org_id}\n${monitor_id}\n${state.changes}`)}`,
    event,
    payload,
    at_ms: now,
  };
  state.outbox.push(notice);
}
