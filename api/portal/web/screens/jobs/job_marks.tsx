// The state of a job and its progress.
import type { ReactElement } from 'react';
import { count, percent } from '../../text/format.ts';
import { Chip } from '../../ui/chip.tsx';
import type { Job } from './job_data.ts';
import styles from './jobs.module.css';

export const STATUS_WORDS = { queued: 'Queued', running: 'Running', complete: 'Complete', failed: 'Failed' } as const;
const TONES = { queued: 'plain', running: 'accent', complete: 'ok', failed: 'error' } as const;

export function StatusMark({ status }: Pick<Job, 'status'>): ReactElement {
  return <Chip tone={TONES[status]}>{STATUS_WORDS[status]}</Chip>;
}

/** Done and all units of the work; nothing while the total is not known. */
export function Progress({ progress: { done, total } }: Pick<Job, 'progress'>): ReactElement | null {
  if (total === 0) return null;
  return (
    <span className={styles.progress}>
      <progress max={total} value={done} aria-label="Progress" title={percent(done / total)} />
      {count(done)} of {count(total)}
    </span>
  );
}
