// The form of an organization for the operator: a new one, or one that exists with its first key and its deletion.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { Button } from '../../ui/button.tsx';
import { toast } from '../../ui/toast.tsx';
import { formErrors } from '../costs/field_error.ts';
import { DeleteOrgDialog } from './delete_org.tsx';
import { FirstKeyDialog } from './first_key.tsx';
import { FormDialog } from './form_dialog.tsx';
import styles from './operator.module.css';
import { bodyOf, draftOf, EMPTY, NAMES, type OrgDraft, wrongNumber } from './org_draft.ts';
import { OrgFields } from './org_fields.tsx';
import { type Org, refreshOrgs } from './orgs_api.ts';

interface NewOrgProps {
  onClose: () => void;
  onCreated: (org_id: string) => void;
}

/** The form of a new organization. */
export function NewOrgDialog({ onClose, onCreated }: NewOrgProps): ReactElement {
  const [draft, setDraft] = useState(EMPTY);
  const [key, setKey] = useState(randomId);
  const create = useMutation({
    mutationFn: () => {
      const org_id = draft.org_id.trim();
      return send(null, 'post', '/admin/orgs', {
        idempotencyKey: key,
        body: { ...bodyOf(draft), ...(org_id === '' ? {} : { org_id }) },
      });
    },
    onSuccess: async ({ data }) => {
      await refreshOrgs();
      toast({ text: `${data.name} is created. Create its first API key, or let its owner log in.` });
      onCreated(data.org_id);
    },
    onError: () => {
      setKey(randomId());
    },
  });
  const isReady = [draft.name, draft.owner_id, draft.owner_email].every((text) => text.trim() !== '');
  return (
    <Form
      title="Create organization"
      action="Create organization"
      draft={draft}
      isNew
      isReady={isReady}
      isBusy={create.isPending}
      error={create.error}
      onChange={setDraft}
      onSave={create.mutate}
      onClose={onClose}
    />
  );
}

/** The form of an organization that exists. */
export function OrgDialog({ org, onClose }: { org: Org; onClose: () => void }): ReactElement {
  const [draft, setDraft] = useState(() => draftOf(org));
  const [layer, setLayer] = useState<'key' | 'delete' | null>(null);
  const save = useMutation({
    mutationFn: () =>
      send(null, 'patch', '/admin/orgs/{org_id}', {
        params: { path: { org_id: org.org_id } },
        body: bodyOf(draft),
      }),
    onSuccess: async ({ data }) => {
      await refreshOrgs();
      toast({ text: `${data.name} is saved.` });
      onClose();
    },
  });
  const closeLayer = (): void => {
    setLayer(null);
  };
  if (layer === 'key') return <FirstKeyDialog org={org} onClose={closeLayer} />;
  if (layer === 'delete') return <DeleteOrgDialog org={org} onClose={closeLayer} onDeleted={onClose} />;
  return (
    <Form
      title={org.name}
      action="Save organization"
      draft={draft}
      isReady={draft.name.trim() !== ''}
      isBusy={save.isPending}
      error={save.error}
      onChange={setDraft}
      onSave={save.mutate}
      onClose={onClose}
    >
      <div className={styles.actions}>
        <Button
          icon="key"
          onClick={() => {
            setLayer('key');
          }}
        >
          Create API key
        </Button>
        <Button
          look="danger"
          icon="trash"
          onClick={() => {
            setLayer('delete');
          }}
        >
          Delete organization
        </Button>
      </div>
    </Form>
  );
}

interface FormProps {
  title: string;
  action: string;
  draft: OrgDraft;
  isNew?: boolean;
  isReady: boolean;
  isBusy: boolean;
  error: unknown;
  onChange: (draft: OrgDraft) => void;
  onSave: () => void;
  onClose: () => void;
  children?: ReactElement;
}

function Form(props: FormProps): ReactElement {
  const { title, action, draft, isNew = false, isReady, isBusy, error, onChange, onSave, onClose, children } = props;
  const wrong = wrongNumber(draft);
  const errors = formErrors(error, Object.values(NAMES));
  return (
    <FormDialog
      title={title}
      action={action}
      wide
      isReady={isReady && wrong === null}
      isBusy={isBusy}
      refusal={errors.form}
      onSend={onSave}
      onClose={onClose}
    >
      <OrgFields
        draft={draft}
        isNew={isNew}
        errorOf={(name) =>
          wrong === name ? 'Must be a number of 0 or more, or empty' : (errors.fields[NAMES[name]] ?? null)
        }
        onChange={(patch) => {
          onChange({ ...draft, ...patch });
        }}
      />
      {children}
    </FormDialog>
  );
}
