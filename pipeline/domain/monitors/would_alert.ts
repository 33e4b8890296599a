// Decides when a monitor would have alerted, from the values of its groups at evenly spaced instants.
// It evaluates each instant as the worker does, so that a preview and the monitor agree. Pure.
import type { MonitorRecord } from '../../../schemas/records/monitor.ts';
import { afterMeasured, freshState } from './evaluate.ts';

export interface PastAlert {
  group: Record<string, string>;
  from: string;
  /** Null for an alert that goes on at the last instant. */
  until: string | null;
  value: number | null;
}

interface GroupValues {
  group: string | null;
  /** One value for each instant; null without data. */
  values: readonly (number | null)[];
}

/**
 * Returns the alerts, the newest first.
 * @param monitor its query is not read
 * @param instants the first instant and the time between two, milliseconds
 */
export function wouldAlert(
  monitor: MonitorRecord,
  groups: readonly GroupValues[],
  { first, step }: { first: number; step: number },
): PastAlert[] {
  const found: PastAlert[] = [];
  let state = freshState(monitor);
  for (let at = 0; at < (groups[0]?.values.length ?? 0); at++) {
    const values = groups.map(({ group, values: all }) => ({ group, value: all[at] ?? null }));
    const next = afterMeasured(state, monitor, { values, missing: null, truncated: false }, first + at * step);
    for (const { event, group, value, at: time } of next.history) {
      const open = found.find((one) => one.until === null && same(one.group, group));
      if (event === 'monitor.alerting') found.push({ group, from: time, until: null, value });
      else if (open !== undefined) open.until = time;
    }
    state = { ...next, history: [], outbox: [] };
  }
  return found.toReversed();
}

const same = (a: Record<string, string>, b: Record<string, string>): boolean => JSON.stringify(a) === JSON.stringify(b);
