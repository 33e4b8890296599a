// "Where it went": one bar of the critical path by name and one of the cost by model, with the five
// largest parts in words. A part leads to the first of its spans.
import type { ReactElement } from 'react';
import { duration, money } from '../../text/format.ts';
import { shareWords } from './share_words.ts';
import { KindMark } from '../../ui/marks.tsx';
import { Name, shownName } from '../../trace/name.tsx';
import type { Part } from '../../trace/model/where.ts';
import { useTrace, useTraceStore } from '../../trace/store.ts';
import styles from './where_it_went.module.css';

const NAMED_PARTS = 5;
/** Parts below a thousandth of the whole are not named. */
const NAMED_SHARE_MIN = 0.001;
/** Smaller parts get no segment of their own. */
const SEGMENT_SHARE_MIN = 0.004;

interface RowProps {
  label: string;
  parts: readonly Part[];
  write: (amount: number) => string;
}

export function WhereItWent(): ReactElement | null {
  const model = useTrace((snapshot) => snapshot.model);
  const { timeParts, costParts } = model;
  if (timeParts.length === 0 && costParts.length === 0) return null;
  return (
    <section className={styles.where} aria-label="Where time and cost went">
      {timeParts.length > 0 && <PartsRow label="Time" parts={timeParts} write={duration} />}
      {costParts.length > 0 && <PartsRow label="Cost" parts={costParts} write={money} />}
    </section>
  );
}

function PartsRow({ label, parts, write }: RowProps): ReactElement {
  const store = useTraceStore();
  const named = parts.slice(0, NAMED_PARTS).filter(({ share }) => share >= NAMED_SHARE_MIN);
  const rest = parts.slice(named.length);
  const restShare = rest.reduce((sum, { share }) => sum + share, 0);
  return (
    <div className={styles.row}>
      <span className={styles.label} title={label === 'Time' ? 'Time on the critical path' : 'Cost by model'}>
        {label}
      </span>
      <span className={styles.bar} aria-hidden="true">
        {parts
          .filter(({ share }) => share >= SEGMENT_SHARE_MIN)
          .map((part) => (
            <span
              key={`${part.kind} ${part.name}`}
              className={styles.segment}
              data-kind={part.kind}
              style={{ flexGrow: part.share }}
              title={`${titleOf(part)}: ${write(part.amount)}, ${shareWords(part.share)}`}
              onClick={() => {
                if (part.first >= 0) store.reveal(part.first);
              }}
            />
          ))}
      </span>
      <ul className={styles.parts}>
        {named.map((part) => (
          <li key={`${part.kind} ${part.name}`}>
            <PartButton part={part} write={write} />
          </li>
        ))}
        {restShare >= NAMED_SHARE_MIN && (
          <li className={styles.rest}>
            {rest.length} more {shareWords(restShare)}
          </li>
        )}
      </ul>
    </div>
  );
}

const titleOf = ({ kind, name, spans }: Part): string =>
  kind === 'idle' ? 'No span works' : `${name}${spans > 1 ? ` ×${spans}` : ''}`;

function PartButton({ part, write }: { part: Part; write: (amount: number) => string }): ReactElement {
  const store = useTraceStore();
  const { kind, name, spans, share, amount, first } = part;
  const words =
    kind === 'idle' ? (
      <>
        <span className={styles.idle} aria-hidden="true" />
        idle
      </>
    ) : (
      <>
        <KindMark kind={kind} silent />
        <span className={styles.name}>
          <Name>{shownName(name)}</Name>
        </span>
        {spans > 1 && <span className={styles.times}>×{spans}</span>}
      </>
    );
  const figures = <b className={styles.share}>{shareWords(share)}</b>;
  const title = `${titleOf(part)}: ${write(amount)}`;
  return first < 0 ? (
    <span className={styles.part} title={title}>
      {words} {figures}
    </span>
  ) : (
    <button
      type="button"
      className={styles.part}
      title={`${title}. Go to the first span.`}
      onClick={() => {
        store.reveal(first);
      }}
    >
      {words} {figures}
    </button>
  );
}
