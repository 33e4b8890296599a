// The shape of a layout while its data loads. It stays invisible for 150 ms, so that fast answers
// cause no flicker.
import type { ReactElement } from 'react';
import styles from './skeleton.module.css';

/** Lines in the place of texts or rows. */
export function Skeleton({ rows = 3, height = 12 }: { rows?: number; height?: number }): ReactElement {
  return (
    <div className={styles.skeleton} aria-hidden="true" aria-busy="true">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className={styles.line} style={{ height, width: `${95 - ((row * 37) % 45)}%` }} />
      ))}
    </div>
  );
}
