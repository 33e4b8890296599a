// The restore of texts from cold storage: by days, by traces, or by traces of some days.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input } from '../../ui/field.tsx';
import costs from '../costs/costs.module.css';
import { codec, text as textParam } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { JobsList } from './jobs_list.tsx';
import { ConfirmDialog, Section } from './parts.tsx';
import { useRestore } from './retention_api.ts';
import styles from './settings.module.css';

/** A trace in the address opens the dialog with it, so that a span whose texts are in cold storage leads here. */
const restoreUrl = codec({ restore: textParam() });

/** The section. */
export function RestoreSection(): ReactElement {
  const { can } = useOrganization();
  const [isOpen, setOpen] = useState(false);
  const [{ restore }, change] = useSearchState(restoreUrl);
  return (
    <Section
      title="Cold storage"
      change={{ permission: 'retention:override', actions: ['cold_storage.restore'] }}
      actions={
        can('retention:override') && (
          <Button
            icon="replay"
            onClick={() => {
              setOpen(true);
            }}
          >
            Restore texts
          </Button>
        )
      }
    >
      <p className={costs.note}>
        Restored prompts and responses can be read and searched for as long as the organization keeps texts, counted
        from the restore.
      </p>
      <JobsList kind="restore" label="Restores" none="Nothing was restored in the last 90 days." />
      {(isOpen || (restore !== '' && can('retention:override'))) && (
        <RestoreDialog
          key={restore}
          traces={restore}
          onClose={() => {
            setOpen(false);
            change({ restore: '' }, { replace: true });
          }}
        />
      )}
    </Section>
  );
}

function RestoreDialog({ traces, onClose }: { traces: string; onClose: () => void }): ReactElement {
  const [draft, setDraft] = useState({ since: '', until: '', traces });
  const restore = useRestore(onClose);
  const trace_ids = draft.traces.split(/[\s,]+/).filter((id) => id !== '');
  const isEmpty = draft.since === '' && draft.until === '' && trace_ids.length === 0;
  const text = (name: 'since' | 'until' | 'traces') => ({
    value: draft[name],
    onChange: ({ target }: { target: { value: string } }) => {
      setDraft({ ...draft, [name]: target.value });
    },
  });
  return (
    <ConfirmDialog
      title="Restore texts from cold storage"
      action="Restore texts"
      disabled={isEmpty}
      busy={restore.isPending}
      error={restore.error}
      onConfirm={() => {
        restore.mutate({
          ...(draft.since === '' ? {} : { since: draft.since }),
          ...(draft.until === '' ? {} : { until: draft.until }),
          ...(trace_ids.length === 0 ? {} : { trace_ids }),
        });
      }}
      onClose={onClose}
    >
      <div className={costs.columns}>
        <Field label="First day" hint="UTC, of the beginning of spans">
          {(control) => <Input {...control} type="date" {...text('since')} />}
        </Field>
        <Field label="Last day" hint="UTC, included">
          {(control) => <Input {...control} type="date" {...text('until')} />}
        </Field>
      </div>
      <Field label="Traces" hint="Ids, separated by spaces or lines. Empty: every trace of the days">
        {(control) => <textarea {...control} className={styles.text} rows={3} spellCheck={false} {...text('traces')} />}
      </Field>
    </ConfirmDialog>
  );
}
