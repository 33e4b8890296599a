// The numbers of a queue: how far it is, what was said by score, and who answered.
import type { ReactElement, ReactNode } from 'react';
import { compact, count, NONE, percent } from '../../text/format.ts';
import { Moment } from '../../ui/moment.tsx';
import type { Progress, Queue } from './annotate_api.ts';
import styles from './annotate.module.css';

/** Hours and minutes until the queue is done at the pace of the last hour; null without a pace. */
function timeLeft({ left, pace_per_hour }: Progress, people: number): string | null {
  if (pace_per_hour === 0 || left === 0) return null;
  const minutes = Math.ceil(((left * people) / pace_per_hour) * 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The numbers in one line. */
export function ProgressSums({ progress }: { progress: Progress }): ReactElement {
  const { done, total, left, skipped, leased, pace_per_hour } = progress;
  return (
    <>
      <progress className={styles.bar} max={Math.max(total, 1)} value={done} aria-label="Items done" />
      <dl className={styles.sums}>
        <Sum name="Done">
          {count(done)} of {count(total)}
        </Sum>
        <Sum name="Left">{count(left)}</Sum>
        <Sum name="Skipped">{count(skipped)}</Sum>
        <Sum name="In progress">{count(leased)}</Sum>
        <Sum name="Pace">{count(pace_per_hour)} per hour</Sum>
        <Sum name="Time left">{timeLeft(progress, 1) ?? NONE}</Sum>
      </dl>
    </>
  );
}

function Sum({ name, children }: { name: string; children: ReactNode }): ReactElement {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const kappaText = (kappa: number | null): string => (kappa === null ? NONE : kappa.toFixed(2));

/** Counts of the answers to each score, and how far people agree. */
export function Said({ progress, queue }: { progress: Progress; queue: Queue }): ReactElement {
  return (
    <section className={styles.section} aria-label="What was said">
      <h2>What was said</h2>
      {progress.scores.map(({ name, given, mean, values, agreement }) => (
        <div key={name} className={styles.score}>
          <h3>
            {name}{' '}
            <span className={styles.quiet}>
              {count(given)} {given === 1 ? 'answer' : 'answers'}
              {mean !== null && `, mean ${compact(mean)}`}
            </span>
          </h3>
          {values.map(({ value, count: times }) => (
            <div key={value} className={styles.value}>
              <bdi>{queue.mode === 'pairwise' ? (PAIR[value] ?? value) : value}</bdi>
              <progress max={given} value={times} aria-label={`Share of ${value}`} />
              <span>
                {count(times)} <span className={styles.quiet}>{percent(times / given)}</span>
              </span>
            </div>
          ))}
          {agreement.items > 0 && (
            <p title={progress.agreement_source}>
              {count(agreement.items)} items have answers of several people: {percent(agreement.percent)} of their
              answers are equal, Cohen’s kappa {kappaText(agreement.kappa)}, {count(agreement.disagreed)}{' '}
              {agreement.disagreed === 1 ? 'disagreement' : 'disagreements'}.
            </p>
          )}
        </div>
      ))}
    </section>
  );
}

const PAIR: Readonly<Record<string, string>> = {
  win: 'first added is better',
  loss: 'second added is better',
  tie: 'equal',
};

/** Number of answers of each person, and the time of the last one. */
export function People({ progress: { people } }: { progress: Progress }): ReactElement | null {
  if (people.length === 0) return null;
  return (
    <section className={styles.section} aria-label="People">
      <h2>People</h2>
      <ul className={styles.list}>
        {people.map(({ by, answered, skipped, pace_per_hour, last_at }) => (
          <li key={`${by.type} ${by.id}`} className={styles.item}>
            <bdi className={styles.ids}>{by.id}</bdi>
            <span className={styles.answer}>
              {count(answered)} answered, {count(skipped)} skipped, {count(pace_per_hour)} in the last hour
              {last_at !== null && <Moment at={last_at} form="ago" />}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
