// Small signs that the lists share: a duration with its bar, tags, and the verdicts of judges.
import type { ReactElement } from 'react';
import { duration } from '../text/format.ts';
import { cx } from '../ui/cx.ts';
import type { Outcome } from '../ui/marks.tsx';
import { Tooltip } from '../ui/tooltip.tsx';
import styles from './marks.module.css';

/** Characters of tags that stand in a row before "+2" names the rest. */
const ROW_CHARS_MAX = 12;

/** A duration and its bar on the scale of the list. */
export function DurationBar({ ms, max_ms, outcome }: { ms: number; max_ms: number; outcome: Outcome }): ReactElement {
  return (
    <span className={styles.bar}>
      <span className={styles.track} aria-hidden="true">
        <span
          className={styles.fill}
          data-outcome={outcome}
          style={{ display: 'block', width: `${(100 * ms) / Math.max(1, max_ms)}%` }}
        />
      </span>
      <span>{duration(ms)}</span>
    </span>
  );
}

/** All tags, on as many lines as they need. */
export function Tags({ tags }: { tags: readonly string[] }): ReactElement {
  return (
    <span className={cx(styles.tags, styles.wrapping)}>
      {tags.map((tag) => (
        <span key={tag} className={styles.tag}>
          {tag}
        </span>
      ))}
    </span>
  );
}

/** The tags that fit into a row, whole, and the number of the others, which a tooltip shows. */
export function RowTags({ tags }: { tags: readonly string[] }): ReactElement | null {
  if (tags.length === 0) return null;
  const shown = fitting(tags);
  const rest = tags.length - shown.length;
  const name = shown.length === 0 ? `${tags.length} ${tags.length === 1 ? 'tag' : 'tags'}` : `+${rest}`;
  return (
    <span className={styles.tags}>
      {shown.map((tag) => (
        <span key={tag} className={styles.tag}>
          {tag}
        </span>
      ))}
      {rest > 0 && (
        <Tooltip text={tags.join(', ')}>
          {(id) => (
            <span className={styles.more} aria-describedby={id} aria-label={`${name}: ${tags.join(', ')}`} role="note">
              {name}
            </span>
          )}
        </Tooltip>
      )}
    </span>
  );
}

/** Returns the first tags that fit into a row together. */
export function fitting(tags: readonly string[]): string[] {
  const shown: string[] = [];
  let chars = 0;
  for (const tag of tags) {
    chars += tag.length + 2;
    if (chars > ROW_CHARS_MAX) break;
    shown.push(tag);
  }
  return shown;
}

export type Verdict = 'pass' | 'warn' | 'fail' | 'error';
const VERDICT_WORDS: Readonly<Record<Verdict, string>> = {
  pass: 'passed',
  warn: 'warned',
  fail: 'failed',
  error: 'could not judge',
};

interface JudgeVerdict {
  judge: string;
  verdict: Verdict;
}
const WORST_FIRST: readonly Verdict[] = ['fail', 'error', 'warn', 'pass'];
const worstFirst = (verdicts: readonly JudgeVerdict[]): JudgeVerdict[] =>
  verdicts.toSorted((a, b) => WORST_FIRST.indexOf(a.verdict) - WORST_FIRST.indexOf(b.verdict));

/** Returns the verdicts in words, worst first. */
export const verdictWords = (verdicts: readonly JudgeVerdict[]): string =>
  worstFirst(verdicts)
    .map(({ judge, verdict }) => `${judge}: ${VERDICT_WORDS[verdict]}`)
    .join(', ');

/** One sign per verdict, worst first; the name says how many there are of each. */
export function VerdictDots({ verdicts }: { verdicts: readonly JudgeVerdict[] }): ReactElement {
  const sorted = worstFirst(verdicts);
  const words = verdictWords(verdicts);
  return (
    <span className={styles.verdicts} role="img" aria-label={words} title={words}>
      {sorted.slice(0, DOTS_MAX).map(({ judge, verdict }) => (
        <svg
          key={judge}
          width={10}
          height={10}
          viewBox="0 0 10 10"
          className={verdictClass(verdict)}
          aria-hidden="true"
        >
          {verdict === 'pass' && <circle cx={5} cy={5} r={4} />}
          {verdict === 'warn' && <path d="M5 .5 9.5 5 5 9.5.5 5Z" />}
          {verdict === 'fail' && <path d="M5 .5 9.8 9.2H.2Z" />}
          {verdict === 'error' && <circle cx={5} cy={5} r={3.25} fill="none" stroke="currentColor" strokeWidth={1.5} />}
        </svg>
      ))}
      {sorted.length > DOTS_MAX && <span>+{sorted.length - DOTS_MAX}</span>}
    </span>
  );
}

const DOTS_MAX = 4;
const verdictClass = (verdict: Verdict): string | undefined =>
  ({ pass: styles.pass, warn: styles.warn, fail: styles.fail, error: styles.broken })[verdict];
