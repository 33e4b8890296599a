// The panel of an item: its parts as JSON, the trace that it came from, and its editor.
import { type ReactElement, useState } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { Editor } from '../../editor/editor.tsx';
import { Button } from '../../ui/button.tsx';
import { JsonViewer } from '../../trace/json/json_viewer.tsx';
import { Name } from '../../trace/name.tsx';
import styles from '../compare/compare.module.css';
import { type NewItem, readItem, writeItem } from './new_item.ts';

interface ItemPanelProps {
  title: string;
  item: NewItem;
  isRemoved: boolean;
  /** Absent for a person who may not change datasets. */
  onSave?: ((item: NewItem) => void) | undefined;
  onRemove?: (() => void) | undefined;
}

/** Returns the address of the trace that an item came from; null where it names none. */
export function sourceOf(org_id: string, { metadata }: NewItem): { trace_id: string; href: string } | null {
  const { trace_id, span_id } = metadata;
  if (typeof trace_id !== 'string' || trace_id === '') return null;
  const query = typeof span_id === 'string' ? `?${new URLSearchParams({ span: span_id }).toString()}` : '';
  return { trace_id, href: `/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(trace_id)}${query}` };
}

export function ItemPanel({ title, item, isRemoved, onSave, onRemove }: ItemPanelProps): ReactElement {
  const { org_id } = useOrganization();
  const [isEditing, setEditing] = useState(false);
  const source = sourceOf(org_id, item);
  return (
    <section className={styles.panel} aria-label="Item">
      <div className={styles.traces}>
        <h2>{title}</h2>
        {source !== null && (
          <span className={styles.quiet}>
            from{' '}
            <Link href={source.href}>
              <Name>{source.trace_id}</Name>
            </Link>
          </span>
        )}
        {onSave !== undefined && !isEditing && !isRemoved && (
          <Button
            onClick={() => {
              setEditing(true);
            }}
          >
            Edit item
          </Button>
        )}
        {onRemove !== undefined && !isEditing && (
          <Button look={isRemoved ? 'plain' : 'danger'} onClick={onRemove}>
            {isRemoved ? 'Keep item' : 'Remove item'}
          </Button>
        )}
      </div>
      {isEditing && onSave !== undefined ? (
        <ItemEditor
          item={item}
          onCancel={() => {
            setEditing(false);
          }}
          onSave={(next) => {
            setEditing(false);
            onSave(next);
          }}
        />
      ) : (
        <>
          {isRemoved && <p>The next version leaves this item out.</p>}
          <Part title="Input" value={item.input} />
          {item.expected !== null && <Part title="Expected" value={item.expected} />}
          {Object.keys(item.metadata).length > 0 && <Part title="Metadata" value={item.metadata} />}
        </>
      )}
    </section>
  );
}

function Part({ title, value }: { title: string; value: unknown }): ReactElement {
  return (
    <div>
      <h3>{title}</h3>
      <JsonViewer given={{ value }} label={title} />
    </div>
  );
}

interface ItemEditorProps {
  item: NewItem;
  onSave: (item: NewItem) => void;
  onCancel: () => void;
}

export function ItemEditor({ item, onSave, onCancel }: ItemEditorProps): ReactElement {
  const [text, setText] = useState(() => writeItem(item));
  const [problem, setProblem] = useState<string | null>(null);
  const save = (): void => {
    const read = readItem(text);
    if (typeof read === 'string') setProblem(read);
    else onSave(read);
  };
  return (
    <>
      <Editor
        label="Item as JSON"
        language="json"
        focused
        rows={12}
        rowsMax={30}
        value={text}
        error={problem}
        hint="An object with input, and with expected and metadata where there are any."
        onChange={(next) => {
          setText(next);
          setProblem(null);
        }}
        onSave={save}
      />
      <div className={styles.traces}>
        <Button look="primary" keys="Ctrl+Enter" hint="Keep the change" onClick={save}>
          Keep change
        </Button>
        <Button look="quiet" onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </>
  );
}
