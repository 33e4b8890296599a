// The histogram over the list. It loads beside the rows and fails by itself.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { tracesHistogramQuery } from '../../lists/begin_traces.ts';
import { Histogram } from '../../lists/histogram.tsx';
import type { Query } from '../../lists/list_query.ts';
import { bucketsOf } from '../../lists/series.ts';
import type { ChangeList } from '../../lists/use_list_url.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import styles from './traces_screen.module.css';

interface TracesHistogramProps {
  org_id: string;
  query: Query;
  onChange: ChangeList;
}

/** The histogram; a drag makes its stretch the time range of the list. */
export function TracesHistogram({ org_id, query, onChange }: TracesHistogramProps): ReactElement {
  const series = useQuery({ ...tracesHistogramQuery(org_id, query), placeholderData: keepPreviousData });
  const { data, error } = series;
  const shape = useMemo(() => (data === undefined ? { buckets: [], bucket_ms: 0 } : bucketsOf(data)), [data]);
  return (
    <div className={styles.chart}>
      {data === undefined && error !== null ? (
        <ErrorPanel
          error={error}
          what="the histogram"
          onRetry={() => {
            void series.refetch();
          }}
        />
      ) : (
        <Histogram
          {...shape}
          stale={series.isPlaceholderData}
          onChoose={(since_ms, until_ms) => {
            const time = { since: new Date(since_ms).toISOString(), until: new Date(until_ms).toISOString() };
            onChange((now) => ({ ...now, time }));
          }}
        />
      )}
    </div>
  );
}
