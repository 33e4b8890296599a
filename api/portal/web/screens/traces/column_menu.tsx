// Chooses the columns of the table, their order and their widths, by keyboard or pointer. The choice is the
// person's; where the address names columns, a change here replaces those.
import { type ReactElement, useState } from 'react';
import {
  allColumns,
  type ColumnId,
  type ListColumn,
  movedColumn,
  resizedColumn,
  toggledColumn,
  WIDTH_STEP,
} from '../../lists/columns.ts';
import type { ListUrl } from '../../lists/list_url.ts';
import type { ChangeList } from '../../lists/use_list_url.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { chooseColumns, useColumns } from './column_choice.ts';
import styles from './column_menu.module.css';

interface ColumnMenuProps {
  state: ListUrl;
  onChange: ChangeList;
}

/** The button and its dialog. */
export function ColumnMenu(props: ColumnMenuProps): ReactElement {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button
        icon="columns"
        hint="Columns"
        aria-haspopup="dialog"
        onClick={() => {
          setOpen(true);
        }}
      />
      {open && (
        <ColumnDialog
          {...props}
          onClose={() => {
            setOpen(false);
          }}
        />
      )}
    </>
  );
}

function ColumnDialog({ state, onChange, onClose }: ColumnMenuProps & { onClose: () => void }): ReactElement {
  const shown = useColumns(state);
  const hidden = allColumns().filter(({ id }) => shown.every((one) => one.id !== id));
  const choose = (columns: readonly ListColumn[] | null): void => {
    chooseColumns(columns);
    if (state.cols !== null) onChange((now) => ({ ...now, cols: null }), { replace: true });
  };
  const toggle = (id: ColumnId): void => {
    choose(toggledColumn(shown, id));
  };
  return (
    <Dialog
      title="Columns"
      onClose={onClose}
      onSubmit={onClose}
      footer={
        <>
          <Button
            onClick={() => {
              choose(null);
            }}
          >
            Restore default columns
          </Button>
          <Button look="primary" type="submit">
            Done
          </Button>
        </>
      }
    >
      <ul className={styles.list} aria-label="Shown columns">
        {shown.map((column) => (
          <ColumnLine key={column.id} column={column} only={shown.length === 1} onToggle={toggle}>
            <ColumnPlace column={column} shown={shown} onChoose={choose} />
          </ColumnLine>
        ))}
      </ul>
      <ul className={styles.list} aria-label="Other columns">
        {hidden.map((column) => (
          <ColumnLine key={column.id} column={column} hidden onToggle={toggle} />
        ))}
      </ul>
    </Dialog>
  );
}

interface ColumnLineProps {
  column: ListColumn;
  hidden?: boolean;
  /** True for the last shown column, which cannot be hidden. */
  only?: boolean;
  onToggle: (id: ColumnId) => void;
  children?: ReactElement;
}

function ColumnLine({ column, hidden = false, only = false, onToggle, children }: ColumnLineProps): ReactElement {
  return (
    <li className={styles.line}>
      <label className={styles.name}>
        <input
          type="checkbox"
          checked={!hidden}
          disabled={only}
          onChange={() => {
            onToggle(column.id);
          }}
        />
        {column.label}
      </label>
      {children}
    </li>
  );
}

interface ColumnPlaceProps {
  column: ListColumn;
  shown: readonly ListColumn[];
  onChoose: (columns: readonly ListColumn[]) => void;
}

/** The buttons that move and size a column. Those that would do nothing stay in place, so that the focus does too. */
function ColumnPlace({ column: { id, label, width, grow }, shown, onChoose }: ColumnPlaceProps): ReactElement {
  const at = shown.findIndex((one) => one.id === id);
  const actions = [
    { icon: 'arrow-up', hint: `Move ${label} up`, off: at === 0, columns: () => movedColumn(shown, id, -1) },
    {
      icon: 'arrow-down',
      hint: `Move ${label} down`,
      off: at === shown.length - 1,
      columns: () => movedColumn(shown, id, 1),
    },
    { icon: 'minus', hint: `Make ${label} narrower`, off: false, columns: () => resizedColumn(shown, id, -WIDTH_STEP) },
    { icon: 'plus', hint: `Make ${label} wider`, off: false, columns: () => resizedColumn(shown, id, WIDTH_STEP) },
  ] as const;
  return (
    <span className={styles.actions}>
      <span className={styles.width}>{grow === 0 ? `${width} px` : `${width} px or more`}</span>
      {actions.map(({ icon, hint, off, columns }) => (
        <Button
          key={icon}
          look="quiet"
          icon={icon}
          hint={hint}
          aria-disabled={off}
          onClick={() => {
            onChoose(columns());
          }}
        />
      ))}
    </span>
  );
}
