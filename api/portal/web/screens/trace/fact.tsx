// One labelled fact in the head of a trace.
import type { ReactElement, ReactNode } from 'react';
import styles from './trace_head.module.css';

export function Fact({ label, title, children }: { label: string; title?: string; children: ReactNode }): ReactElement {
  return (
    <div className={styles.fact} title={title}>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}
