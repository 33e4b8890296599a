// The values of a stored monitor over the last hours, as its definition measures them now.
import type { ReactElement } from 'react';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import panels from '../home/home.module.css';
import lists from '../sessions/sessions.module.css';
import type { Monitor, PreviewBody } from './draft.ts';
import { usePreview } from './monitor_api.ts';
import { MonitorChart, previewNote } from './monitor_chart.tsx';
import styles from './monitors.module.css';

/** Hours that can be shown. */
export const SPANS = ['6', '24', '168'] as const;
type Hours = (typeof SPANS)[number];
const LABELS: Readonly<Record<Hours, string>> = { '6': '6 hours', '24': '24 hours', '168': '7 days' };
/** Shorter windows have more evaluations in a week than a preview has. */
const WEEK_WINDOW_MIN = 7;

interface MonitorValuesProps {
  monitor: Monitor;
  hours: Hours;
  format: (value: number | null) => string;
  onHours: (hours: Hours) => void;
}

/** The section. */
export function MonitorValues({ monitor, hours, format, onHours }: MonitorValuesProps): ReactElement {
  const { window_minutes, threshold } = monitor;
  const spans = SPANS.filter((one) => one !== '168' || window_minutes >= WEEK_WINDOW_MIN);
  const shown = spans.find((one) => one === hours) ?? '24';
  const preview = usePreview(bodyOf(monitor, Number(shown)));
  const { data, error } = preview;
  return (
    <section className={lists.section} aria-busy={preview.isPending}>
      <h2>Values</h2>
      <Tabs
        label="Time"
        selected={shown}
        tabs={spans.map((id) => ({ id, label: LABELS[id] }))}
        onSelect={(id) => {
          onHours(spans.find((one) => one === id) ?? '24');
        }}
      />
      {error !== null && data === undefined ? (
        <ErrorPanel error={error} what="the values" onRetry={() => void preview.refetch()} />
      ) : data === undefined ? (
        <Skeleton rows={12} height={20} />
      ) : data.data.groups.length === 0 ? (
        <EmptyState title="No value in this time">
          The chart shows the value of each group once data that matches the query is there.
        </EmptyState>
      ) : (
        <>
          <div className={panels.panel}>
            <MonitorChart preview={data.data} threshold={threshold} format={format} stale={preview.isPlaceholderData} />
          </div>
          <p className={styles.quiet}>{previewNote(data.data)}</p>
        </>
      )}
    </section>
  );
}

/** Returns what a preview asks of a stored monitor. */
function bodyOf({ query, group_by, window_minutes, threshold, for_minutes }: Monitor, hours: number): PreviewBody {
  const { view, measures, filters } = query;
  return {
    query: { view, measures, filters } as PreviewBody['query'],
    group_by,
    window_minutes,
    threshold,
    for_minutes,
    hours,
  };
}
