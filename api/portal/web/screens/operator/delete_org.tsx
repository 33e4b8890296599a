// The dialog that deletes an organization with everything of it, after its id was typed.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { Field, Input } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import { formErrors } from '../costs/field_error.ts';
import { FormDialog } from './form_dialog.tsx';
import { type Org, refreshOrgs } from './orgs_api.ts';

interface DeleteOrgProps {
  org: Org;
  onClose: () => void;
  onDeleted: () => void;
}

/** The dialog. */
export function DeleteOrgDialog({ org, onClose, onDeleted }: DeleteOrgProps): ReactElement {
  const [typed, setTyped] = useState('');
  const remove = useMutation({
    mutationFn: () => send(null, 'delete', '/admin/orgs/{org_id}', { params: { path: { org_id: org.org_id } } }),
    onSuccess: async ({ data }) => {
      await refreshOrgs();
      toast({ text: `${org.name} is being deleted by the job ${data.job_id}.` });
      onDeleted();
    },
  });
  const isSame = typed === org.org_id;
  return (
    <FormDialog
      title={`Delete ${org.name}`}
      action="Delete organization"
      danger
      isReady={isSame}
      isBusy={remove.isPending}
      refusal={formErrors(remove.error, []).form}
      onSend={remove.mutate}
      onClose={onClose}
    >
      <p>
        Its keys stop at once. A job then erases its telemetry, settings and members from every store. Nothing of it can
        be restored.
      </p>
      <Field label={`Type ${org.org_id} to delete it`}>
        {(control) => (
          <Input
            {...control}
            value={typed}
            onChange={({ target }) => {
              setTyped(target.value);
            }}
          />
        )}
      </Field>
    </FormDialog>
  );
}
