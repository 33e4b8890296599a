// Anomalies in words, as marks on a chart of days, and as links to their traces. Pure.
import type { ChartMark } from '../../charts/chart_shape.ts';
import type { components } from '../../client/contract.d.ts';
import { escapedValue } from '../../lists/list_url.ts';
import { money } from '../../text/format.ts';
import { daysHref } from './cost_days.ts';

export type Anomaly = components['schemas']['Anomaly'];

/** Returns the cost of a day against the mean of the days before it, in words. */
export const anomalyWords = ({ actual_usd, expected_usd }: Anomaly): string =>
  `${money(actual_usd)} instead of ${money(expected_usd)}`;

/** Returns the address of the traces of an anomalous day, of the model and the agent that caused it. */
export function anomalyHref(traces: string, { date, attributed_to: { model, agent_id } }: Anomaly): string {
  return daysHref(traces, date, date, {
    ...(model === null ? {} : { model: escapedValue(model) }),
    ...(agent_id === null ? {} : { agent_id: escapedValue(agent_id) }),
  });
}

/** Returns the marks of the anomalies on the dates of a chart. */
export function anomalyMarks(anomalies: readonly Anomaly[], dates: readonly string[]): ChartMark[] {
  const places = new Map(dates.map((date, at) => [date, at]));
  return anomalies.flatMap((anomaly): ChartMark[] => {
    const at = places.get(anomaly.date);
    return at === undefined
      ? []
      : [{ at, kind: 'Anomaly', label: anomalyWords(anomaly), colour: anomaly.z > 0 ? 'error' : 'warn' }];
  });
}
