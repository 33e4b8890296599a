// A table of a few rows.
import type { ReactElement, ReactNode } from 'react';
import styles from './judges.module.css';

interface SmallTableProps {
  label: string;
  heads: readonly string[];
  rows: readonly { key: string; cells: readonly ReactNode[] }[];
}

/** The table. It scrolls sideways by itself where it is too wide. */
export function SmallTable({ label, heads, rows }: SmallTableProps): ReactElement {
  return (
    <div className={styles.scroll} role="region" aria-label={label} tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells }) => (
            <tr key={key}>
              {cells.map((cell, at) => (
                <td key={heads[at]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
