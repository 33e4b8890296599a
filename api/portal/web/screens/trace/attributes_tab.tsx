// The tab Attributes: a flat table that is searched as it is typed. A click copies a value; the link
// beside it, or Alt with a click, leads to the traces that have the same value.
import { type ReactElement, useMemo, useState } from 'react';
import { Link } from 'wouter';
import { navigate } from 'wouter/use-browser-location';
import { useOrganization } from '../../client/session.ts';
import { copyText } from '../../ui/copy_button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Icon } from '../../ui/icons.tsx';
import { toast } from '../../ui/toast.tsx';
import { Name } from '../../trace/name.tsx';
import { useTrace } from '../../trace/store.ts';
import { oneLine, preview } from '../../trace/text/one_line.ts';
import { type AttributeRow, attributeRows, filteredListPath } from './attribute_rows.ts';
import type { SpanDetail } from './trace_api.ts';
import styles from './span_panel.module.css';

/** Rows shown at most; the filter finds the others. */
const ROWS_MAX = 500;
const VALUE_CHARS = 600;
const NAME_CHARS = 80;

export function AttributesTab({ detail }: { detail: SpanDetail }): ReactElement {
  const [filter, setFilter] = useState('');
  const all = useMemo(() => attributeRows(detail), [detail]);
  const wanted = filter.trim().toLowerCase();
  const rows = all.filter(({ path, value }) => `${path}\n${value}`.toLowerCase().includes(wanted));
  return (
    <>
      <input
        type="search"
        className={styles.filter}
        aria-label="Find attributes"
        placeholder={`Find in ${all.length} attributes`}
        value={filter}
        onChange={(event) => {
          setFilter(event.target.value);
        }}
      />
      {rows.length === 0 ? (
        <EmptyState title="No attribute matches">Remove the text to see all {all.length} attributes.</EmptyState>
      ) : (
        <table className={styles.pairs}>
          <tbody>
            {rows.slice(0, ROWS_MAX).map((row) => (
              <Attribute key={row.path} row={row} />
            ))}
          </tbody>
        </table>
      )}
      {rows.length > ROWS_MAX && (
        <p className={styles.quiet}>
          The first {ROWS_MAX} of {rows.length}. Type a name to find the others.
        </p>
      )}
    </>
  );
}

function Attribute({ row: { path, value, filter } }: { row: AttributeRow }): ReactElement {
  const { org_id } = useOrganization();
  const startedAt = useTrace(({ model }) => model.outline.trace.started_at);
  const href = filter === null ? null : filteredListPath(org_id, filter, startedAt, Date.now());
  const words = `Show the traces with ${oneLine(path)} ${preview(value, NAME_CHARS)}`;
  return (
    <tr>
      <th scope="row">
        <Name>{path}</Name>
      </th>
      <td>
        <span className={styles.valueCell}>
          <CopyValue
            path={path}
            value={value}
            onFilter={
              href === null
                ? null
                : () => {
                    navigate(href);
                  }
            }
          />
          {href !== null && (
            <Link href={href} className={styles.filterLink} aria-label={words} title={words}>
              <Icon name="filter" size={14} />
            </Link>
          )}
        </span>
      </td>
    </tr>
  );
}

interface CopyValueProps {
  path: string;
  value: string;
  /** Shows the traces with the value; null where the list has no such filter. */
  onFilter: (() => void) | null;
}

function CopyValue({ path, value, onFilter }: CopyValueProps): ReactElement {
  const shown = value.length > VALUE_CHARS ? `${value.slice(0, VALUE_CHARS)}… (${value.length} characters)` : value;
  const copy = `Copy the value of ${oneLine(path)}`;
  return (
    <button
      type="button"
      className={styles.copyValue}
      title={onFilter === null ? copy : `${copy}. Alt with a click shows the traces with it.`}
      onClick={(event) => {
        if (event.altKey && onFilter !== null) {
          onFilter();
          return;
        }
        void copyText(value).then((isCopied) => {
          toast({ text: isCopied ? `Copied ${oneLine(path)}` : 'The browser refused to copy' });
        });
      }}
    >
      <bdi>{shown}</bdi>
    </button>
  );
}
