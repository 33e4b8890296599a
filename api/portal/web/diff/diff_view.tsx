// Shows what differs between two texts: side by side or in one column, by lines and words, or by the
// keys of JSON. Equal stretches are folded, and only the rows in sight are mounted. A screen gives
// the two texts; the comparison runs in a worker.
import { type ReactElement, useState } from 'react';
import { useNarrow } from '../lists/use_narrow.ts';
import { count } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { ErrorPanel } from '../ui/error_panel.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { DiffRows } from './diff_rows.tsx';
import styles from './diff.module.css';
import type { Diff, DiffForm } from './shape.ts';
import { chooseColumns, useColumns, useDiff } from './use_diff.ts';

interface DiffViewProps {
  /** Name of what is compared, for example "Prompt". */
  title: string;
  left: string;
  right: string;
  /** Names of the two sides, for example "Baseline" and "Candidate". */
  sides: readonly [left: string, right: string];
  /** Level of the heading; default 3. */
  level?: 2 | 3 | 4;
}

/** Returns whether a text looks like JSON of an object or a list, without parsing it. */
function looksLikeJson(text: string): boolean {
  const trimmed = text.trim();
  const ends = trimmed.charAt(0) + trimmed.charAt(trimmed.length - 1);
  return ends === '{}' || ends === '[]';
}

/** A comparison of two texts with its heading and its choices. */
export function DiffView({ title, left, right, sides, level = 3 }: DiffViewProps): ReactElement {
  const isJson = looksLikeJson(left) && looksLikeJson(right);
  const [wanted, setWanted] = useState<DiffForm>('json');
  const [showsAll, setShowsAll] = useState(false);
  const isNarrow = useNarrow();
  const columns = useColumns();
  const form = isJson ? wanted : 'text';
  const diff = useDiff(form, left, right);
  const Heading = `h${level}` as const;
  const shown = isNarrow ? 'one' : columns;
  return (
    <section className={styles.diff}>
      <div className={styles.head}>
        <Heading>{title}</Heading>
        <span className={styles.quiet} role="status">
          {diff === null || diff instanceof Error ? '' : diffWords(diff)}
        </span>
        <span className={styles.choices}>
          {isJson && (
            <Button
              look="quiet"
              aria-pressed={form === 'json'}
              hint="Compare by key; the order of keys means nothing"
              onClick={() => {
                setWanted(form === 'json' ? 'text' : 'json');
              }}
            >
              JSON
            </Button>
          )}
          {!isNarrow && <SideBySide />}
          <Button
            look="quiet"
            aria-pressed={showsAll}
            onClick={() => {
              setShowsAll(!showsAll);
            }}
          >
            All lines
          </Button>
        </span>
      </div>
      {diff === null ? (
        <Skeleton rows={4} />
      ) : diff instanceof Error ? (
        <>
          <ErrorPanel error={diff} what="the comparison" />
          <DiffRows diff={apart(left, right)} columns={shown} title={title} sides={sides} showsAll />
        </>
      ) : (
        <>
          {notes(diff, wanted, isJson).map((note) => (
            <p key={note} className={styles.note}>
              {note}
            </p>
          ))}
          <DiffRows diff={diff} columns={shown} title={title} sides={sides} showsAll={showsAll || diff.gave_up} />
        </>
      )}
    </section>
  );
}

/** Chooses between two columns and one. */
function SideBySide(): ReactElement {
  const columns = useColumns();
  return (
    <Button
      look="quiet"
      aria-pressed={columns === 'two'}
      onClick={() => {
        chooseColumns(columns === 'two' ? 'one' : 'two');
      }}
    >
      Side by side
    </Button>
  );
}

function diffWords({ removed, added, gave_up }: Diff): string {
  if (gave_up) return '';
  if (removed + added === 0) return 'no difference';
  return `−${count(removed)} +${count(added)} ${removed + added === 1 ? 'line' : 'lines'}`;
}

/** Returns what the person should know about how the texts were compared. */
function notes({ form, gave_up, unmarked }: Diff, wanted: DiffForm, isJson: boolean): string[] {
  return [
    ...(gave_up ? ['The texts differ too much to compare them line by line. Both are shown whole.'] : []),
    ...(unmarked > 0 ? [`The words of ${count(unmarked)} changed lines differ too much to mark them.`] : []),
    ...(isJson && wanted === 'json' && form === 'text'
      ? ['One of the texts is not valid JSON, so they are compared as texts.']
      : []),
  ];
}

/** Returns both texts side by side, where no comparison could be made. */
function apart(left: string, right: string): Diff {
  const [a, b] = [left.split('\n'), right.split('\n')];
  const line = (text: string | undefined, number: number) =>
    text === undefined ? null : { number, parts: [{ text, changed: false }] };
  const rows = Array.from({ length: Math.max(a.length, b.length) }, (_, i) => {
    const [from, to] = [line(a[i], i + 1), line(b[i], i + 1)];
    const kind = from === null ? ('added' as const) : to === null ? ('removed' as const) : ('changed' as const);
    return { kind, left: from, right: to };
  });
  return { form: 'text', rows, removed: 0, added: 0, gave_up: true, unmarked: 0 };
}
