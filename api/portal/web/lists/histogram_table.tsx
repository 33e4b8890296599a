// The histogram as a table, for people who read numbers rather than bars. The time of a row is a button
// that filters by it, as a drag over the bars does. Times without traces are left out.
import type { ReactElement } from 'react';
import { count } from '../text/format.ts';
import { axisTimes } from '../text/format_time.ts';
import numbers from '../ui/number_table.module.css';
import type { Bucket } from './histogram_shape.ts';
import styles from './histogram.module.css';

interface HistogramTableProps {
  buckets: readonly Bucket[];
  bucket_ms: number;
  zone: 'local' | 'utc';
  onChoose: (since_ms: number, until_ms: number) => void;
}

/** The table, in a region that scrolls. */
export function HistogramTable({ buckets, bucket_ms, zone, onChoose }: HistogramTableProps): ReactElement {
  const rows = buckets.filter(({ traces }) => traces > 0);
  const now = Date.now();
  return (
    <div className={styles.region} role="region" aria-label="Traces over time" tabIndex={0}>
      <table className={numbers.table}>
        <caption>Traces over time. Times without traces are left out.</caption>
        <thead>
          <tr>
            {['Time', 'Traces', 'Succeeded', 'Failed', 'Timed out'].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ start_ms, traces, errors, timeouts }) => (
            <tr key={start_ms}>
              <th scope="row">
                <button
                  type="button"
                  title="Filter by this time"
                  onClick={() => {
                    onChoose(start_ms, start_ms + bucket_ms - 1);
                  }}
                >
                  {axisTimes([start_ms, start_ms + bucket_ms], bucket_ms, zone, now).join(' – ')}
                </button>
              </th>
              {[traces, traces - errors - timeouts, errors, timeouts].map((value, at) => (
                <td key={at}>{count(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
