// A page of the operator while its data is on the way, or could not be read.
import type { ReactElement } from 'react';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import styles from './operator.module.css';

interface WaitingProps {
  query: { isError: boolean; error: unknown; refetch: () => Promise<unknown> };
  /** Name of what is read: "the jobs". */
  what: string;
  rows: number;
}

/** The page. */
export function Waiting({ query, what, rows }: WaitingProps): ReactElement {
  return (
    <div className={styles.page}>
      {query.isError ? (
        <ErrorPanel error={query.error} what={what} onRetry={() => void query.refetch()} />
      ) : (
        <Skeleton rows={rows} height={20} />
      )}
    </div>
  );
}
