// The dialog that creates an API key for an organization, and shows it once.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { formErrors } from '../costs/field_error.ts';
import { Field, Input, Select } from '../../ui/field.tsx';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import { FormDialog } from './form_dialog.tsx';
import type { Org } from './orgs_api.ts';

const PRESETS = [
  { name: 'Everything', scopes: ['*'] },
  { name: 'Send telemetry', scopes: ['ingest:write'] },
  { name: 'Manage the organization', scopes: ['org:read', 'org:write'] },
] as const;

/** The dialog. */
export function FirstKeyDialog({ org, onClose }: { org: Org; onClose: () => void }): ReactElement {
  const [name, setName] = useState('first key');
  const [preset, setPreset] = useState(0);
  const [key, setKey] = useState(randomId);
  const create = useMutation({
    mutationFn: () =>
      send(null, 'post', '/admin/orgs/{org_id}/api-keys', {
        params: { path: { org_id: org.org_id } },
        idempotencyKey: key,
        body: { name: name.trim(), scopes: [...(PRESETS[preset] ?? PRESETS[0]).scopes] },
      }),
    onError: () => {
      setKey(randomId());
    },
  });
  if (create.data !== undefined)
    return (
      <SecretDialog title={`API key of ${org.name}`} noun="key" secret={create.data.raw_key} onClose={onClose}>
        <p>
          Programs send it as X-Org-Api-Key together with X-Org-Id: {org.org_id}. It is shown now and not again; the key
          belongs to no member.
        </p>
      </SecretDialog>
    );
  const errors = formErrors(create.error, ['name', 'scopes']);
  return (
    <FormDialog
      title={`Create an API key for ${org.name}`}
      action="Create key"
      isReady={name.trim() !== ''}
      isBusy={create.isPending}
      refusal={errors.form}
      onSend={create.mutate}
      onClose={onClose}
    >
      <Field label="Name" error={errors.fields.name ?? null}>
        {(control) => (
          <Input
            {...control}
            value={name}
            maxLength={200}
            onChange={({ target }) => {
              setName(target.value);
            }}
          />
        )}
      </Field>
      <Field label="Scopes" error={errors.fields.scopes ?? null}>
        {(control) => (
          <Select
            {...control}
            value={preset}
            onChange={({ target }) => {
              setPreset(Number(target.value));
            }}
          >
            {PRESETS.map(({ name: title, scopes }, index) => (
              <option key={title} value={index}>
                {title} ({scopes.join(', ')})
              </option>
            ))}
          </Select>
        )}
      </Field>
    </FormDialog>
  );
}
