// A JSON value as a tree that opens lazily, with its own find. Rows in sight are mounted, and only
// open parts exist, so 20 MB open as fast as 20 kB.
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type ReactElement, useEffect, useId, useRef, useState, useSyncExternalStore } from 'react';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { copyText, CopyButton } from '../../ui/copy_button.tsx';
import { Icon } from '../../ui/icons.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { oneLine } from '../text/one_line.ts';
import { FindField } from '../text/find_field.tsx';
import { type JsonSource, localSource, parseSource } from './json_source.ts';
import type { JsonRow } from './json_tree.ts';
import styles from './json_viewer.module.css';

const ROW_PX = 20;
const ROWS_MAX = 24;
/** A longer text of one value is shown by its beginning; the copy has all of it. */
const WHOLE_CHARS_MAX = 100_000;

interface JsonViewerProps {
  /** JSON text, or a value that is parsed already. */
  given: { text: string } | { value: unknown };
  label: string;
  /** True: the viewer fills its parent and scrolls; else it is as tall as its rows, up to a bound. */
  fills?: boolean;
}

type Opened = { source: JsonSource } | { error: string } | null;

/** Opens the source of a viewer and ends it with the viewer. */
function useSource(given: JsonViewerProps['given']): Opened {
  const [opened, setOpened] = useState<Opened>(null);
  const value = 'value' in given ? given.value : undefined;
  const text = 'text' in given ? given.text : null;
  useEffect(() => {
    let source: JsonSource | null = null;
    let isEnded = false;
    const open = text === null ? Promise.resolve(localSource(value)) : parseSource(text);
    open.then(
      (next) => {
        source = next;
        if (isEnded) next.end();
        else setOpened({ source: next });
      },
      (error: unknown) => {
        if (!isEnded) setOpened({ error: error instanceof Error ? error.message : String(error) });
      },
    );
    return () => {
      isEnded = true;
      source?.end();
    };
  }, [value, text]);
  return opened;
}

export function JsonViewer({ given, label, fills = false }: JsonViewerProps): ReactElement {
  const opened = useSource(given);
  if (opened === null) return <Skeleton rows={4} />;
  if ('error' in opened) return <p className={styles.note}>This text is not JSON: {opened.error}</p>;
  return <JsonRows source={opened.source} label={label} fills={fills} />;
}

interface RowsProps {
  source: JsonSource;
  label: string;
  fills: boolean;
}

function JsonRows({ source, label, fills }: RowsProps): ReactElement {
  useSyncExternalStore(source.subscribe, source.version);
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const [focus, setFocus] = useState(0);
  const [cut, setCut] = useState<string | null>(null);
  const virtual = useVirtualizer({
    count: source.size(),
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 10,
  });
  const goTo = (index: number): void => {
    const at = Math.min(Math.max(index, 0), source.size() - 1);
    setFocus(at);
    virtual.scrollToIndex(at);
  };
  const find = useJsonFind(source, goTo);
  const showWhole = (row: JsonRow): void => {
    void source.textOf(row.path).then(setCut);
  };
  const onKeyDown = useJsonKeys(source, focus, goTo, find.focusField);
  return (
    <div className={styles.viewer} data-fills={fills}>
      <FindField {...find.field} label={`Find in ${label}`} />
      <div
        ref={scroller}
        role="tree"
        aria-label={label}
        aria-activedescendant={`${id}-${focus}`}
        tabIndex={0}
        className={styles.rows}
        style={fills ? undefined : { height: Math.min(source.size(), ROWS_MAX) * ROW_PX + 8 }}
        onKeyDown={onKeyDown}
      >
        <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {virtual.getVirtualItems().map(({ index, start }) => (
            <Row
              key={index}
              id={`${id}-${index}`}
              row={source.row(index)}
              top={start}
              isFocused={index === focus}
              onFocus={() => {
                setFocus(index);
              }}
              onToggle={(row) => {
                source.setOpen(row.path, !row.isOpen);
              }}
              onWhole={showWhole}
            />
          ))}
        </div>
      </div>
      {cut !== null && (
        <WholeText
          text={cut}
          onClose={() => {
            setCut(null);
          }}
        />
      )}
    </div>
  );
}

function WholeText({ text, onClose }: { text: string; onClose: () => void }): ReactElement {
  return (
    <div className={styles.whole}>
      <pre tabIndex={0}>{text.length > WHOLE_CHARS_MAX ? `${text.slice(0, WHOLE_CHARS_MAX)}…` : text}</pre>
      <div className={styles.wholeActions}>
        <CopyButton text={text} label={`Copy all ${count(text.length)} characters`} labelled />
        <Button onClick={onClose}>Close text</Button>
      </div>
    </div>
  );
}

/** Finds in the whole value, also in what is not open. */
function useJsonFind(source: JsonSource, goTo: (index: number) => void) {
  const [text, setText] = useState('');
  const [found, setFound] = useState<readonly (readonly number[])[]>([]);
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const show = async (list: readonly (readonly number[])[], next: number): Promise<void> => {
    const index = (next + list.length) % Math.max(1, list.length);
    const path = list[index];
    setAt(index);
    if (path !== undefined) goTo(await source.reveal(path));
  };
  const focusField = (): void => {
    field.current?.focus();
    field.current?.select();
  };
  return {
    focusField,
    field: {
      inputRef: field,
      text,
      total: found.length,
      at,
      onChange: (next: string) => {
        setText(next);
        void source.find(next).then((list) => {
          setFound(list);
          void show(list, 0);
        });
      },
      onStep: (step: 1 | -1) => {
        void show(found, at + step);
      },
    },
  };
}

function useJsonKeys(
  source: JsonSource,
  focus: number,
  goTo: (index: number) => void,
  focusFind: () => void,
): (event: KeyboardEvent<HTMLElement>) => void {
  return (event) => {
    const row = source.row(focus);
    if ((event.ctrlKey || event.metaKey) && event.key === 'f') focusFind();
    else if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    else if (event.key === 'ArrowDown') goTo(focus + 1);
    else if (event.key === 'ArrowUp') goTo(focus - 1);
    else if (event.key === 'Home') goTo(0);
    else if (event.key === 'End') goTo(source.size() - 1);
    else if (event.key === 'c' && row !== null) void source.textOf(row.path).then(copyText);
    else if (event.key === 'Enter' && row !== null) source.setOpen(row.path, !row.isOpen);
    else if (event.key === 'ArrowRight' && row !== null) {
      if (row.isOpen || !isContainer(row)) goTo(focus + 1);
      else source.setOpen(row.path, true);
    } else if (event.key === 'ArrowLeft' && row !== null) {
      if (row.isOpen) source.setOpen(row.path, false);
      else if (row.path.length > 0) void source.reveal(row.path.slice(0, -1)).then(goTo);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
}

const isContainer = ({ kind }: JsonRow): boolean => kind === 'object' || kind === 'array' || kind === 'range';

interface RowProps {
  id: string;
  row: JsonRow | null;
  top: number;
  isFocused: boolean;
  onFocus: () => void;
  onToggle: (row: JsonRow) => void;
  onWhole: (row: JsonRow) => void;
}

function Row({ id, row, top, isFocused, onFocus, onToggle, onWhole }: RowProps): ReactElement {
  const transform = `translateY(${top}px)`;
  if (row === null) return <div className={styles.row} style={{ transform }} aria-hidden="true" />;
  const opens = isContainer(row) && row.size > 0;
  return (
    <div
      id={id}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-expanded={opens ? row.isOpen : undefined}
      aria-selected={isFocused}
      className={styles.row}
      data-match={row.isMatch}
      style={{ transform, paddingInlineStart: 4 + Math.min(row.depth, 24) * 14 }}
      onClick={() => {
        onFocus();
        if (opens) onToggle(row);
      }}
    >
      <span className={styles.twisty} aria-hidden="true">
        {opens && <Icon name={row.isOpen ? 'chevron-down' : 'chevron-right'} size={12} />}
      </span>
      {row.key !== null && <bdi className={styles.key}>{oneLine(row.key)}: </bdi>}
      <bdi className={styles.value} data-kind={row.kind}>
        {opens && row.isOpen ? `${count(row.size)} ${row.size === 1 ? 'entry' : 'entries'}` : oneLine(row.preview)}
      </bdi>
      {row.isCut && (
        <button
          type="button"
          tabIndex={-1}
          className={styles.more}
          onClick={(event) => {
            event.stopPropagation();
            onWhole(row);
          }}
        >
          show all {count(row.size)} characters
        </button>
      )}
    </div>
  );
}
