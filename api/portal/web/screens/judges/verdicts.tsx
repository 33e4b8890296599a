// Verdicts as the screens of judges and evals show them: one as a sign with its word, many as a bar.
import type { ReactElement } from 'react';
import { VerdictDots, type Verdict } from '../../lists/marks.tsx';
import { count, percent } from '../../text/format.ts';
import styles from './judges.module.css';

const WORDS: Readonly<Record<Verdict, string>> = { pass: 'Pass', warn: 'Warn', fail: 'Fail', error: 'Not judged' };

/** The verdicts, worst first. */
export const VERDICTS_WORST_FIRST: readonly Verdict[] = ['fail', 'error', 'warn', 'pass'];

/** A verdict with its sign; the sign says nothing that the word does not. */
export function VerdictMark({ verdict }: { verdict: Verdict }): ReactElement {
  return (
    <span className={styles.verdict}>
      <span aria-hidden="true">
        <VerdictDots verdicts={[{ judge: '', verdict }]} />
      </span>
      {WORDS[verdict]}
    </span>
  );
}

interface Counts {
  passed: number;
  warned: number;
  failed: number;
  errors: number;
}

/** The share of each verdict as a bar; its name says the counts. */
export function VerdictBar({ counts }: { counts: Counts }): ReactElement {
  const parts = [
    ['pass', counts.passed],
    ['warn', counts.warned],
    ['fail', counts.failed],
    ['error', counts.errors],
  ] as const;
  const words = parts.flatMap(([verdict, number]) =>
    number === 0 ? [] : [`${count(number)} ${WORDS[verdict].toLowerCase()}`],
  );
  return (
    <span className={styles.bar} role="img" aria-label={words.join(', ') || 'No verdict'} title={words.join(', ')}>
      {parts.map(([verdict, number]) =>
        number === 0 ? null : (
          <span key={verdict} className={styles.part} data-verdict={verdict} style={{ flexGrow: number }} />
        ),
      )}
    </span>
  );
}

/** A pass rate with the number of judgements in its tooltip. */
export function PassRate({ rate, total }: { rate: number | null; total: number }): ReactElement {
  return <span title={`${count(total)} ${total === 1 ? 'judgement' : 'judgements'}`}>{percent(rate)}</span>;
}
