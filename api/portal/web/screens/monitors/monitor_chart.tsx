// The values of a monitor over the past, a line for each of its most extreme groups, with the
// threshold and a mark where an alert begins; and the same alerts as a table.
import { type ReactElement, useMemo } from 'react';
import { Chart } from '../../charts/chart.tsx';
import type { ChartMark } from '../../charts/chart_shape.ts';
import { rememberedColours } from '../../charts/colours.ts';
import { useOrganization } from '../../client/session.ts';
import { usePreferences } from '../../shell/preferences.ts';
import { count, exact } from '../../text/format.ts';
import { axisTimes, fullTime, zoneName } from '../../text/format_time.ts';
import { Moment } from '../../ui/moment.tsx';
import { SmallTable } from '../judges/small_table.tsx';
import type { MonitorPreview } from './monitor_api.ts';
import { groupWords, minutesWords } from './monitor_words.ts';

const MINUTE_MS = 60_000;
const ALERTS_SHOWN = 20;

interface MonitorChartProps {
  preview: MonitorPreview;
  threshold: { above?: number; below?: number };
  format: (value: number | null) => string;
  /** True while newer values load. */
  stale: boolean;
}

/** The chart. */
export function MonitorChart({ preview, threshold, format, stale }: MonitorChartProps): ReactElement {
  const { org_id } = useOrganization();
  const { zone } = usePreferences();
  const { groups, alerts, since } = preview;
  const names = groups.map(({ group }) => groupWords(group));
  const colours = rememberedColours(org_id, names).join();
  const content = useMemo(() => contentOf(preview, colours.split(',') as Colours, zone), [preview, colours, zone]);
  const limit = threshold.above ?? threshold.below ?? 0;
  const side = threshold.above === undefined ? 'Alerts below' : 'Alerts above';
  const limits = useMemo(
    () => [{ value: limit, label: `${side} ${format(limit)}`, colour: 'error' as const }],
    [limit, side, format],
  );
  return (
    <Chart
      {...content}
      name="Value over time"
      summary={alertSummary(alerts.length)}
      axis={`Time (${zoneName(zone, Date.parse(since))})`}
      limits={limits}
      format={format}
      exact={exact}
      stale={stale}
    />
  );
}

type Colours = ReturnType<typeof rememberedColours>;

function contentOf(preview: MonitorPreview, colours: Colours, zone: 'local' | 'utc') {
  const { since, until, step_minutes, groups, alerts } = preview;
  const first = Date.parse(since);
  const step = step_minutes * MINUTE_MS;
  const moments = Array.from(
    { length: Math.round((Date.parse(until) - first) / step) + 1 },
    (_, at) => first + at * step,
  );
  const marks = alerts.map(({ group, from }): ChartMark => ({
    at: Math.round((Date.parse(from) - first) / step),
    kind: 'Alert begins',
    label: groupWords(group),
    colour: 'error',
  }));
  return {
    points: moments.map((at) => fullTime(at, zone)),
    ticks: axisTimes(moments, step, zone, first),
    series: groups.map(({ group, values }, at) => ({
      id: `${at}`,
      label: groupWords(group),
      values,
      colour: colours[at] ?? ('series-other' as const),
      form: 'line' as const,
    })),
    marks,
  };
}

/** Returns how often the definition would have alerted. */
export const alertSummary = (alerts: number): string =>
  alerts === 0 ? 'No alert.' : `${count(alerts)} ${alerts === 1 ? 'alert' : 'alerts'}.`;

/** Says how a preview was evaluated, where that differs from a stored monitor. */
export function previewNote({ step_minutes, truncated, groups }: MonitorPreview): string {
  return [
    step_minutes > 1
      ? `Evaluated every ${minutesWords(step_minutes)}; a stored monitor is evaluated every minute and can see more.`
      : '',
    truncated ? `The ${count(groups.length)} most extreme groups are shown.` : '',
  ]
    .filter((part) => part !== '')
    .join(' ');
}

/** The alerts as a table, the newest first. */
export function AlertTable({ preview, format }: Pick<MonitorChartProps, 'preview' | 'format'>): ReactElement | null {
  const { alerts } = preview;
  if (alerts.length === 0) return null;
  return (
    <SmallTable
      label="Alerts in this time"
      heads={['Group', 'From', 'Until', 'Value']}
      rows={alerts.slice(0, ALERTS_SHOWN).map(({ group, from, until, value }) => ({
        key: `${groupWords(group)} ${from}`,
        cells: [
          groupWords(group),
          <Moment key="from" at={from} />,
          until === null ? 'Now' : <Moment key="until" at={until} />,
          format(value),
        ],
      }))}
    />
  );
}
