// The tab Raw: the record of the span as the API returns it.
import type { ReactElement } from 'react';
import { CopyButton } from '../../ui/copy_button.tsx';
import { JsonViewer } from '../../trace/json/json_viewer.tsx';
import type { SpanDetail } from './trace_api.ts';
import styles from './span_panel.module.css';

export function RawTab({ detail }: { detail: SpanDetail }): ReactElement {
  return (
    <>
      <div className={styles.sectionHead}>
        <h3>Record of the span</h3>
        <span className={styles.push}>
          <CopyButton text={() => JSON.stringify(detail, null, 2)} label="Copy record" />
        </span>
      </div>
      <JsonViewer given={{ value: detail }} label="Record of the span" />
    </>
  );
}
