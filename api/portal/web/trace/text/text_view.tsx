// A text as it is: exact, selectable, with visible line breaks. Long texts are cut into pieces that
// are mounted as they come into sight, and have their own find.
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactElement, type ReactNode, useMemo, useRef, useState } from 'react';
import { FindField } from './find_field.tsx';
import { findInText, type Found, pieceAt, pieceStarts, WHOLE_CHARS_MAX } from './pieces.ts';
import styles from './text.module.css';

const PIECE_PX = 440;
/** A text shown in one piece marks no more places than this. */
const MARKS_MAX = 500;

interface TextViewProps {
  text: string;
  label: string;
  /** Text that is looked for on the whole screen; its places are marked. */
  find?: string;
}

export function TextView({ text, label, find = '' }: TextViewProps): ReactElement {
  if (text.length > WHOLE_CHARS_MAX) return <LongText text={text} label={label} />;
  return (
    <div className={styles.text} dir="auto">
      {marked(text, findInText(text, find.trim()).slice(0, MARKS_MAX), 0, -1)}
    </div>
  );
}

/** Returns a text with its found places marked; `offset` is where the text begins in the one that was searched. */
function marked(text: string, found: readonly Found[], offset: number, current: number): ReactNode {
  if (found.length === 0) return text;
  const parts: ReactNode[] = [];
  let at = 0;
  for (const { from, to } of found) {
    const start = Math.max(0, from - offset);
    const end = Math.min(text.length, to - offset);
    if (end <= at) continue;
    parts.push(text.slice(at, start));
    parts.push(
      <mark key={from} data-current={from === current}>
        {text.slice(start, end)}
      </mark>,
    );
    at = end;
  }
  parts.push(text.slice(at));
  return parts;
}

/** Returns the index of the piece that holds a position. */
function pieceOf(starts: readonly number[], position: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

function LongText({ text, label }: { text: string; label: string }): ReactElement {
  const scroller = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const starts = useMemo(() => pieceStarts(text), [text]);
  const [wanted, setWanted] = useState('');
  const [at, setAt] = useState(0);
  const found = useMemo(() => findInText(text, wanted), [text, wanted]);
  const virtual = useVirtualizer({
    count: starts.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => PIECE_PX,
    overscan: 1,
  });
  const show = (list: readonly Found[], next: number): void => {
    const index = (next + list.length) % Math.max(1, list.length);
    setAt(index);
    const place = list[index];
    if (place !== undefined) virtual.scrollToIndex(pieceOf(starts, place.from), { align: 'center' });
  };
  return (
    <div className={styles.long}>
      <FindField
        label={`Find in ${label}`}
        text={wanted}
        total={found.length}
        at={at}
        inputRef={field}
        onChange={(next) => {
          setWanted(next);
          show(findInText(text, next), 0);
        }}
        onStep={(step) => {
          show(found, at + step);
        }}
      />
      <div
        ref={scroller}
        tabIndex={0}
        role="region"
        aria-label={label}
        className={styles.longScroll}
        onKeyDown={(event) => {
          if (!(event.ctrlKey || event.metaKey) || event.key !== 'f') return;
          event.preventDefault();
          field.current?.focus();
        }}
      >
        <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {virtual.getVirtualItems().map(({ index, start, key }) => {
            const piece = pieceAt(text, starts, index);
            const from = starts[index] ?? 0;
            const inside = found.filter((place) => place.to > from && place.from < from + piece.length);
            return (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className={styles.piece}
                dir="auto"
                style={{ transform: `translateY(${start}px)` }}
              >
                {marked(piece, inside, from, found[at]?.from ?? -1)}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
