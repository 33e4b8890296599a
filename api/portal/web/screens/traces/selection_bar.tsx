// The actions on selected traces: compare two of them, export them as NDJSON, copy their ids, clear the selection.
import { type ReactElement, useEffect, useRef, useState } from 'react';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { exportTraces } from '../../lists/export_traces.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import { toast } from '../../ui/toast.tsx';
import { QueueButton } from '../annotate/queue_button.tsx';
import { ToDatasetButton } from '../datasets/to_dataset_button.tsx';
import { EvalButton } from '../evals/eval_button.tsx';
import styles from './selection_bar.module.css';

interface SelectionBarProps {
  ids: ReadonlySet<string>;
  onClear: () => void;
  onCompare: () => void;
}

/** The bar below the table; it is there while traces are selected. */
export function SelectionBar({ ids, onClear, onCompare }: SelectionBarProps): ReactElement {
  const { org_id, can } = useOrganization();
  const [done, setDone] = useState<number | null>(null);
  const [anonymize, setAnonymize] = useState(false);
  const end = useRef<AbortController | null>(null);
  useEffect(() => () => end.current?.abort(), []);
  const start = async (): Promise<void> => {
    end.current = new AbortController();
    setDone(0);
    try {
      const { truncated } = await exportTraces(org_id, [...ids], {
        anonymize,
        signal: end.current.signal,
        onProgress: setDone,
      });
      const text = truncated
        ? 'The file has reached its maximum size and holds only the first traces.'
        : `${count(ids.size)} ${ids.size === 1 ? 'trace was' : 'traces were'} exported.`;
      toast({ text });
    } catch (error) {
      if (!end.current.signal.aborted)
        toast({ tone: 'error', text: error instanceof RequestError ? error.detail : 'The export failed.' });
    } finally {
      setDone(null);
    }
  };
  return (
    <div className={styles.bar} role="region" aria-label="Selected traces">
      <span role="status">
        {done === null ? `${count(ids.size)} selected` : `Exporting ${done + 1} of ${ids.size}`}
      </span>
      {done === null && ids.size === 2 && (
        <Button icon="compare" keys="c" hint="Compare the two traces" onClick={onCompare}>
          Compare
        </Button>
      )}
      {can('traces:export') && done === null && (
        <>
          <Button
            icon="download"
            onClick={() => {
              void start();
            }}
          >
            Export NDJSON
          </Button>
          <label className={styles.option}>
            <input
              type="checkbox"
              checked={anonymize}
              onChange={(event) => {
                setAnonymize(event.currentTarget.checked);
              }}
            />
            Anonymize personal data
          </label>
        </>
      )}
      <ToDatasetButton targets={() => ({ trace_ids: [...ids] })} />
      <QueueButton trace_ids={[...ids]} />
      <EvalButton trace_ids={[...ids]} />
      {done !== null && <Button onClick={() => end.current?.abort()}>Cancel export</Button>}
      <CopyButton text={() => [...ids].join('\n')} label="Copy ids" labelled />
      <Button look="quiet" icon="x" onClick={onClear} keys="Escape">
        Clear selection
      </Button>
    </div>
  );
}
