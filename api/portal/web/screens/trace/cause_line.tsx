// The line that says in which span a failed trace failed, and the errors from which it recovered.
import type { ReactElement } from 'react';
import { Icon } from '../../ui/icons.tsx';
import { KindMark } from '../../ui/marks.tsx';
import { KIND_WORDS, Name, shownName } from '../../trace/name.tsx';
import { kindOf, nameOf, outcomeOf } from '../../trace/model/tree.ts';
import { oneLine, preview } from '../../trace/text/one_line.ts';
import { useTrace, useTraceStore } from '../../trace/store.ts';
import styles from './cause_line.module.css';

const MESSAGE_CHARS = 300;
const NAME_CHARS = 80;

export function CauseLine(): ReactElement | null {
  const store = useTraceStore();
  const model = useTrace((snapshot) => snapshot.model);
  const { cause, recovered, tree } = model;
  if (cause === null && recovered.length === 0) return null;
  const first = recovered[0] ?? -1;
  return (
    <section
      className={styles.line}
      data-outcome={cause === null ? 'none' : outcomeOf(tree, cause.span)}
      aria-label="Cause of the failure"
    >
      {cause !== null && <CauseWords span={cause.span} above={cause.chain.length - 1} />}
      {recovered.length > 0 && (
        <button
          type="button"
          className={styles.recovered}
          title={`First: ${oneLine(nameOf(tree, first))}. Next error (.)`}
          onClick={() => {
            store.reveal(first);
          }}
        >
          {recovered.length === 1 ? '1 error was recovered' : `${recovered.length} errors were recovered`}
        </button>
      )}
    </section>
  );
}

function CauseWords({ span, above }: { span: number; above: number }): ReactElement {
  const store = useTraceStore();
  const { tree } = useTrace((snapshot) => snapshot.model);
  const kind = kindOf(tree, span);
  const name = nameOf(tree, span);
  const message = tree.errors.get(span) ?? '';
  const timedOut = outcomeOf(tree, span) === 'timeout';
  return (
    <>
      <Icon name={timedOut ? 'clock' : 'warning'} />
      <span className={styles.words}>
        {timedOut ? 'Timed out in ' : 'Failed in '}
        <button
          type="button"
          className={styles.span}
          title={name}
          onClick={() => {
            store.reveal(span);
          }}
        >
          <KindMark kind={kind} silent />
          <Name>{name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS)}…` : shownName(name)}</Name>
        </button>{' '}
        ({KIND_WORDS[kind]})
        {message !== '' && (
          <>
            :{' '}
            <q className={styles.message} title={message}>
              {preview(message, MESSAGE_CHARS)}
            </q>
          </>
        )}
        {above > 0 && (
          <span className={styles.above}>
            {' '}
            · {above} {above === 1 ? 'span' : 'spans'} above failed with it
          </span>
        )}
      </span>
    </>
  );
}
