// The right side of the editor: the values of the last 24 hours and the alerts that the definition
// would have had. It is asked again once somebody pauses.
import { type ReactElement, useMemo } from 'react';
import { useSettled } from '../../lists/use_settled.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import judges from '../judges/judges.module.css';
import { type AnalyticsView, type Draft, missingIn, type PreviewBody, previewBody } from './draft.ts';
import { usePreview } from './monitor_api.ts';
import { AlertTable, alertSummary, MonitorChart, previewNote } from './monitor_chart.tsx';
import { formatOf } from './monitor_words.ts';
import styles from './monitors.module.css';

const PAUSE_MS = 400;
const HOURS = 24;

interface PreviewPaneProps {
  draft: Draft;
  views: readonly AnalyticsView[];
  numbers: readonly string[];
}

/** The pane. */
export function PreviewPane({ draft, views, numbers }: PreviewPaneProps): ReactElement {
  const ready = views.length > 0 && Object.keys(missingIn(draft)).length === 0;
  const asked = useSettled(ready ? JSON.stringify(previewBody(draft, numbers, HOURS)) : null, PAUSE_MS);
  const body = useMemo(() => (asked === null ? null : (JSON.parse(asked) as PreviewBody)), [asked]);
  const preview = usePreview(body);
  const format = formatOf(views, draft.view, draft.measure);
  const { data, error } = preview;
  return (
    <section className={judges.pane} aria-labelledby="preview" aria-busy={preview.isFetching || undefined}>
      <h2 id="preview">In the last 24 hours</h2>
      <p role="status" className={styles.quiet}>
        {data === undefined || error !== null || body === null ? '' : alertSummary(data.data.alerts.length)}
      </p>
      {body === null ? (
        <EmptyState title="No preview yet">
          Enter a threshold. The preview shows the values of the last 24 hours and when the monitor would have alerted.
        </EmptyState>
      ) : error !== null ? (
        <ErrorPanel error={error} what="the preview" onRetry={() => void preview.refetch()} />
      ) : data === undefined ? (
        <Skeleton rows={12} height={20} />
      ) : data.data.groups.length === 0 ? (
        <EmptyState title="No value in the last 24 hours">
          No data matches the query. Change the filters, or save the monitor: it is evaluated every minute.
        </EmptyState>
      ) : (
        <>
          <MonitorChart
            preview={data.data}
            threshold={body.threshold}
            format={format}
            stale={preview.isPlaceholderData}
          />
          <AlertTable preview={data.data} format={format} />
          <p className={styles.quiet}>{previewNote(data.data)}</p>
        </>
      )}
    </section>
  );
}
