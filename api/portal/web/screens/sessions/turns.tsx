// The turns of a session as a conversation: what the user said, what was answered, and beside each its
// outcome, cost and scores with a link to the trace. Long pauses are said.
import { Fragment, type ReactElement } from 'react';
import { Link } from 'wouter';
import type { Answer } from '../../client/api.ts';
import { nameOf } from '../../lists/trace_data.ts';
import { duration, money, moneyExact, tokenFlow } from '../../text/format.ts';
import { Chip } from '../../ui/chip.tsx';
import { cx } from '../../ui/cx.ts';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import { gapWords } from './gap_words.ts';
import styles from './turns.module.css';

export type Turn = Answer<'/v1/sessions/{session_id}'>['data']['turns'][number];

interface TurnsProps {
  turns: readonly Turn[];
  /** The turn that the keys act on; −1: none. */
  cursor: number;
  hrefOf: (trace_id: string) => string;
}

/** The turns, oldest first. */
export function Turns({ turns, cursor, hrefOf }: TurnsProps): ReactElement {
  return (
    <ol className={styles.turns}>
      {turns.map((turn, at) => {
        const before = turns[at - 1];
        const gap = before === undefined ? null : gapWords(before.ended_at, turn.started_at);
        return (
          <Fragment key={turn.trace_id}>
            {gap !== null && <li className={styles.gap}>{gap}</li>}
            <li id={turnElementId(turn.trace_id)} className={cx(styles.turn, at === cursor && styles.cursor)}>
              <TurnHead turn={turn} href={hrefOf(turn.trace_id)} />
              <Said who="User" text={turn.user_text} />
              <Said who="Answer" text={turn.answer} />
              <Scores scores={turn.scores} />
            </li>
          </Fragment>
        );
      })}
    </ol>
  );
}

/** Returns the id of the element of a turn. */
export const turnElementId = (trace_id: string): string => `turn-${trace_id}`;

function TurnHead({ turn, href }: { turn: Turn; href: string }): ReactElement {
  return (
    <div className={styles.head}>
      <OutcomeMark outcome={turn.outcome} />
      <Link href={href} className={styles.name}>
        {nameOf(turn)}
      </Link>
      <Moment at={turn.started_at} />
      <span>{duration(turn.duration_ms)}</span>
      <span title={moneyExact(turn.cost_usd)}>{money(turn.cost_usd)}</span>
      <span>{tokenFlow(turn.input_tokens, turn.output_tokens)} tokens</span>
    </div>
  );
}

function Said({ who, text }: { who: 'User' | 'Answer'; text: Turn['answer'] }): ReactElement | null {
  if (text === null)
    return who === 'Answer' ? <p className={styles.missing}>No text of this answer is stored.</p> : null;
  return (
    <div className={cx(styles.said, who === 'User' && styles.user)}>
      <span className={styles.who}>{who}</span>
      <p className={styles.text}>{text.text}</p>
      {text.truncated && <p className={styles.missing}>The text goes on; the trace has all of it.</p>}
    </div>
  );
}

function Scores({ scores }: { scores: Turn['scores'] }): ReactElement | null {
  if (scores.length === 0) return null;
  return (
    <div className={styles.scores}>
      {scores.map(({ name, source, value, verdict }) => (
        <Chip key={`${source}:${name}`} field={name} tone={toneOf(verdict)}>
          {verdict ?? String(value)}
        </Chip>
      ))}
    </div>
  );
}

function toneOf(verdict: Turn['scores'][number]['verdict']): 'plain' | 'ok' | 'warn' | 'error' {
  if (verdict === 'pass') return 'ok';
  if (verdict === 'warn') return 'warn';
  return verdict === 'fail' ? 'error' : 'plain';
}
