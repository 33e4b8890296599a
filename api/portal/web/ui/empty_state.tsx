// Says why a panel is empty and offers the one step on.
import type { ReactElement, ReactNode } from 'react';
import styles from './state.module.css';

/** An empty panel. */
export function EmptyState({
  title,
  children,
  action,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}): ReactElement {
  return (
    <div className={styles.state}>
      <p className={styles.title}>{title}</p>
      {children !== undefined && <div className={styles.text}>{children}</div>}
      {action !== undefined && <div className={styles.actions}>{action}</div>}
    </div>
  );
}
