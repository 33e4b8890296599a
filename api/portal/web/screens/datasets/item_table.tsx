// The items of a version in a windowed table, and the open one beside it.
import { type ReactElement, useState } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { useNarrow } from '../../lists/use_narrow.ts';
import { useKeys } from '../../shell/keys.ts';
import { Button } from '../../ui/button.tsx';
import { type Column, DataTable } from '../../ui/data_table.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { SplitPane } from '../../ui/split_pane.tsx';
import { Name } from '../../trace/name.tsx';
import { preview } from '../../trace/text/one_line.ts';
import styles from '../compare/compare.module.css';
import type { Item } from './dataset_api.ts';
import { type Drafts, withAdded, withItem, withRemoval } from './drafts.ts';
import { ItemEditor, ItemPanel, sourceOf } from './item_panel.tsx';
import type { NewItem } from './new_item.ts';

interface ItemTableProps {
  items: readonly Item[];
  total: number;
  isLoading: boolean;
  drafts: Drafts;
  onDrafts: (drafts: Drafts) => void;
  onNearEnd: () => void;
}

/** A row: a stored item with its draft, or an item that is only a draft. */
interface Row {
  key: string;
  /** Index of the stored item; null for an added one. */
  index: number | null;
  item: NewItem;
  state: '' | 'changed' | 'removed' | 'added';
}

const PREVIEW_CHARS = 200;
const BLANK: NewItem = { input: { text: '' }, expected: { answer: '' }, metadata: {} };

function rowsOf(items: readonly Item[], isWhole: boolean, { replaced, removed, added }: Drafts): Row[] {
  const stored = items.map(({ item_index, input, expected, metadata }): Row => {
    const draft = replaced.get(item_index);
    return {
      key: String(item_index),
      index: item_index,
      item: draft ?? { input, expected, metadata },
      state: removed.has(item_index) ? 'removed' : draft === undefined ? '' : 'changed',
    };
  });
  const drafts = added.map((item, at): Row => ({ key: `added ${at}`, index: null, item, state: 'added' }));
  return isWhole ? [...stored, ...drafts] : stored;
}

/**
 * Returns the index of the open row and its setter, and registers the keys of the table.
 * @param add opens the dialog for a new item; null for a person who may not change datasets
 */
function useCursor(rows: number, add: (() => void) | null): [number, (row: number) => void] {
  const [cursor, setCursor] = useState(0);
  const step = (by: 1 | -1) => (): void => {
    setCursor(Math.min(rows - 1, Math.max(0, cursor + by)));
  };
  useKeys('Items', [
    { keys: ['j', 'ArrowDown'], label: 'Next item', silent: true, run: step(1) },
    { keys: ['k', 'ArrowUp'], label: 'Previous item', silent: true, run: step(-1) },
    ...(add !== null ? [{ keys: 'n', label: 'Add an item', run: add }] : []),
  ]);
  return [cursor, setCursor];
}

export function ItemTable({ items, total, isLoading, drafts, onDrafts, onNearEnd }: ItemTableProps): ReactElement {
  const { org_id, can } = useOrganization();
  const narrow = useNarrow();
  const [layer, setLayer] = useState<'item' | 'new' | null>(null);
  const rows = rowsOf(items, items.length === total, drafts);
  const mayWrite = can('datasets:write');
  const add = (): void => {
    setLayer('new');
  };
  const [cursor, setCursor] = useCursor(rows.length, mayWrite ? add : null);
  const panel = <RowPanel row={rows[cursor]} isLoading={isLoading} drafts={drafts} onDrafts={onDrafts} />;
  const table = (
    <div className={styles.table}>
      <DataTable
        label="Items"
        columns={columnsOf(org_id, narrow)}
        rows={rows}
        rowKey={({ key }) => key}
        cursor={cursor}
        onCursor={setCursor}
        onOpen={() => {
          if (narrow) setLayer('item');
        }}
        onNearEnd={onNearEnd}
        total={total}
        after={isLoading ? <Skeleton rows={8} height={16} /> : null}
      />
    </div>
  );
  const close = (): void => {
    setLayer(null);
  };
  return (
    <>
      {mayWrite && (
        <div className={styles.tools}>
          <Button icon="plus" keys="n" hint="Add an item" onClick={add}>
            Add item
          </Button>
        </div>
      )}
      <div className={styles.content}>
        {narrow ? (
          table
        ) : (
          <SplitPane name="dataset" label="Size of the item" share={0.5}>
            {[table, panel]}
          </SplitPane>
        )}
      </div>
      {narrow && layer === 'item' && (
        <Dialog title="Item" form="sheet" onClose={close}>
          {panel}
        </Dialog>
      )}
      {layer === 'new' && (
        <NewItemDialog
          onClose={close}
          onSave={(item) => {
            onDrafts(withAdded(drafts, item));
          }}
        />
      )}
    </>
  );
}

interface RowPanelProps {
  /** Undefined where the table has no row. */
  row: Row | undefined;
  isLoading: boolean;
  drafts: Drafts;
  onDrafts: (drafts: Drafts) => void;
}

/** The open item. */
function RowPanel({ row, isLoading, drafts, onDrafts }: RowPanelProps): ReactElement {
  const { can } = useOrganization();
  if (row === undefined)
    return (
      <div className={styles.panel}>{isLoading ? <Skeleton rows={6} /> : <EmptyState title="No item is open" />}</div>
    );
  const save = (item: NewItem): void => {
    onDrafts(changed(drafts, row, item));
  };
  const remove = (): void => {
    onDrafts(removed(drafts, row));
  };
  const mayWrite = can('datasets:write');
  return (
    <ItemPanel
      key={`${row.key} ${row.state}`}
      title={row.index === null ? 'New item' : `Item ${row.index + 1}`}
      item={row.item}
      isRemoved={row.state === 'removed'}
      onSave={mayWrite ? save : undefined}
      onRemove={mayWrite ? remove : undefined}
    />
  );
}

function NewItemDialog({ onClose, onSave }: { onClose: () => void; onSave: (item: NewItem) => void }): ReactElement {
  return (
    <Dialog title="Add item" form="wide" onClose={onClose}>
      <ItemEditor
        item={BLANK}
        onCancel={onClose}
        onSave={(item) => {
          onSave(item);
          onClose();
        }}
      />
    </Dialog>
  );
}

const changed = (drafts: Drafts, { index, key }: Row, item: NewItem): Drafts =>
  index === null
    ? { ...drafts, added: drafts.added.map((one, at) => (key === `added ${at}` ? item : one)) }
    : withItem(drafts, index, item);

const removed = (drafts: Drafts, { index, key }: Row): Drafts =>
  index === null
    ? { ...drafts, added: drafts.added.filter((_, at) => key !== `added ${at}`) }
    : withRemoval(drafts, index);

function columnsOf(org_id: string, narrow: boolean): Column<Row>[] {
  const short = (value: unknown): string => (value === null ? '' : preview(JSON.stringify(value), PREVIEW_CHARS));
  const number: Column<Row> = {
    id: 'number',
    head: '#',
    width: '48px',
    align: 'end',
    cell: ({ index }) => (index === null ? 'new' : index + 1),
  };
  const input: Column<Row> = {
    id: 'input',
    head: 'Input',
    width: 'minmax(160px, 3fr)',
    cell: ({ item, state }) => (
      <span>
        {state === '' ? '' : <strong>{state} </strong>}
        {short(item.input)}
      </span>
    ),
  };
  if (narrow) return [number, input];
  return [
    number,
    input,
    { id: 'expected', head: 'Expected', width: 'minmax(120px, 2fr)', cell: ({ item }) => short(item.expected) },
    {
      id: 'source',
      head: 'Trace',
      width: 'minmax(80px, 1fr)',
      cell: ({ item }) => {
        const source = sourceOf(org_id, item);
        return source === null ? (
          ''
        ) : (
          <Link href={source.href}>
            <Name>{source.trace_id}</Name>
          </Link>
        );
      },
    },
  ];
}
