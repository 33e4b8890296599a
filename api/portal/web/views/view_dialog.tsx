// The dialog that saves the filters of a list as a view, or renames a view.
import { type ReactElement, useState } from 'react';
import { RequestError } from '../client/error.ts';
import { randomId } from '../client/random_id.ts';
import { useOrganization } from '../client/session.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { useViewChanges } from './use_views.ts';
import type { ViewTab } from './view_tabs.ts';
import styles from './view_bar.module.css';

interface ViewDialogProps {
  page: string;
  query: string;
  /** The view to rename; absent: a new one is made. */
  view?: ViewTab;
  onClose: () => void;
  onSaved: (view_id: string) => void;
}

/** The dialog. */
export function ViewDialog({ page, query, view, onClose, onSaved }: ViewDialogProps): ReactElement {
  const { org_id, can } = useOrganization();
  const { create, change } = useViewChanges(org_id, page);
  const [name, setName] = useState(view?.name ?? '');
  const [shared, setShared] = useState(false);
  const [idempotencyKey] = useState(randomId);
  const error = create.error ?? change.error;
  const busy = create.isPending || change.isPending;
  const save = (): void => {
    if (name.trim() === '' || busy) return;
    const onSuccess = ({ data }: { data: { view_id: string } }): void => {
      onSaved(data.view_id);
    };
    if (view !== undefined) change.mutate({ view_id: view.view_id, name }, { onSuccess });
    else create.mutate({ name, query, scope: shared ? 'org' : 'private', idempotencyKey }, { onSuccess });
  };
  return (
    <Dialog
      title={view === undefined ? 'Save view' : 'Rename view'}
      onClose={onClose}
      onSubmit={save}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" busy={busy} disabled={name.trim() === ''}>
            {view === undefined ? 'Save view' : 'Rename view'}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <label>
          Name
          <input
            type="text"
            maxLength={100}
            value={name}
            autoFocus
            onChange={(event) => {
              setName(event.currentTarget.value);
            }}
          />
        </label>
        {view === undefined && can('judges:write') && (
          <label className={styles.check}>
            <input
              type="checkbox"
              checked={shared}
              onChange={(event) => {
                setShared(event.currentTarget.checked);
              }}
            />
            Share with everybody in the organization
          </label>
        )}
        {view === undefined && (
          <p className={styles.query}>
            Saves <code>{query === '' ? 'all traces' : decodeURIComponent(query)}</code>
          </p>
        )}
        {error !== null && (
          <p role="alert" className={styles.error}>
            {error instanceof RequestError ? error.detail : error.message}
          </p>
        )}
      </div>
    </Dialog>
  );
}
