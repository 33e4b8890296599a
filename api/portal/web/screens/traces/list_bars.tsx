// The lines above and below the rows: the exact total with new arrivals, and the end of the list.
import type { ReactElement } from 'react';
import { ROWS_MAX } from '../../lists/rows.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import styles from './traces_screen.module.css';

const SKELETON_ROWS = 20;

interface ListHeadProps {
  total: number | null;
  /** True while other rows load; the number is then the one before. */
  loading: boolean;
  /** Number of traces that arrived since the rows were loaded. */
  fresh: number;
  onShow: () => void;
}

/** The total and the button for new arrivals. */
export function ListHead({ total, loading, fresh, onShow }: ListHeadProps): ReactElement {
  return (
    <div className={styles.head}>
      <span role="status" className={loading ? 'dimmed' : undefined}>
        {total === null ? '' : `${count(total)} ${total === 1 ? 'trace' : 'traces'}`}
      </span>
      {fresh > 0 && (
        <Button look="quiet" onClick={onShow}>
          Show {count(fresh)} new ↑
        </Button>
      )}
      <span className={styles.legend} aria-hidden="true">
        <kbd>j</kbd> <kbd>k</kbd> move <kbd>Enter</kbd> open <kbd>Space</kbd> look <kbd>x</kbd> select <kbd>?</kbd> all
        keys
      </span>
    </div>
  );
}

interface ListEndProps {
  rows: number;
  total: number | null;
  loading: boolean;
  error: unknown;
  onRetry: () => void;
}

/** The line below the last row. */
export function ListEnd({ rows, total, loading, error, onRetry }: ListEndProps): ReactElement | null {
  if (error !== null && error !== undefined) return <ErrorPanel error={error} what="more traces" onRetry={onRetry} />;
  if (loading) return <Skeleton rows={rows === 0 ? SKELETON_ROWS : 3} height={16} />;
  if (rows < ROWS_MAX || total === null || total <= rows) return null;
  return (
    <p className={styles.end}>
      The first {count(ROWS_MAX)} of {count(total)} traces are shown. Choose a time in the histogram, or add a filter,
      to see others.
    </p>
  );
}
