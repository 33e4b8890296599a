// "What needs you": one line and one link for each thing.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import styles from './home.module.css';
import type { useNeeds } from './use_needs.ts';

/** The panel. A kind that cannot be read says so and leaves the others. */
export function NeedsPanel({ needs: { needs, reads, loading } }: { needs: ReturnType<typeof useNeeds> }): ReactElement {
  const failed = reads.filter(({ error }) => error !== null);
  return (
    <section className={styles.section} aria-busy={loading}>
      <h2>What needs you</h2>
      {failed.map(({ what, error, refetch }) => (
        <ErrorPanel
          key={what}
          error={error}
          what={what}
          onRetry={() => {
            void refetch();
          }}
        />
      ))}
      {loading && needs.length === 0 && <Skeleton rows={2} height={16} />}
      {!loading && failed.length === 0 && needs.length === 0 && (
        <p className={styles.none}>Nothing: no open incident, no anomaly, no judge under its threshold.</p>
      )}
      <ul className={styles.list}>
        {needs.map(({ key, kind, tone, text, detail, href, action, at }) => (
          <li key={`${kind} ${key}`} className={styles.line}>
            <span className={styles.severity} data-severity={tone}>
              {kind}
            </span>
            <Link className={styles.name} href={href} title={action}>
              {text}
            </Link>
            <span>{detail}</span>
            <span>{tone}</span>
            {at === null ? <span /> : <Moment at={at} form="ago" />}
          </li>
        ))}
      </ul>
    </section>
  );
}
