// The dialogs that rotate and revoke an API key.
import { type ReactElement, useState } from 'react';
import { oneLine } from '../../trace/text/one_line.ts';
import { Field, Select } from '../../ui/field.tsx';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import costs from '../costs/costs.module.css';
import type { ApiKey } from '../costs/key_api.ts';
import { useRevokeKey, useRotateKey } from './key_changes.ts';
import { OVERLAPS } from './key_scopes.ts';
import { ConfirmDialog } from './parts.tsx';

interface KeyActionProps {
  apiKey: ApiKey;
  onClose: () => void;
}

export function RotateDialog({ apiKey, onClose }: KeyActionProps): ReactElement {
  const [days, setDays] = useState<number>(OVERLAPS[0].days);
  const rotate = useRotateKey(apiKey);
  const name = oneLine(apiKey.name);
  if (rotate.data !== undefined)
    return (
      <SecretDialog title={`New key of ${name}`} noun="key" secret={rotate.data.raw_key} onClose={onClose}>
        <p>The key is shown now and not again. Store it where the program reads it.</p>
        {rotate.data.problem !== null && (
          <p role="alert" className={costs.error}>
            The old key was not ended: {rotate.data.problem} Revoke it in the list.
          </p>
        )}
      </SecretDialog>
    );
  return (
    <ConfirmDialog
      title={`Rotate ${name}`}
      action="Create new key"
      busy={rotate.isPending}
      error={rotate.error}
      onConfirm={() => {
        rotate.mutate(days);
      }}
      onClose={onClose}
    >
      <p>
        The new key has the same name, scopes and limits, and belongs to you.
        {apiKey.expires_at !== null && ' It expires after as many days as the old key had.'}
      </p>
      <Field label={`The old key (${apiKey.key_prefix}…) works for`}>
        {(control) => (
          <Select
            {...control}
            ref={(field) => field?.setAttribute('autofocus', '')}
            value={days}
            onChange={({ target }) => {
              setDays(Number(target.value));
            }}
          >
            {OVERLAPS.map((overlap) => (
              <option key={overlap.days} value={overlap.days}>
                {overlap.label}
              </option>
            ))}
          </Select>
        )}
      </Field>
    </ConfirmDialog>
  );
}

export function RevokeDialog({ apiKey, onClose }: KeyActionProps): ReactElement {
  const revoke = useRevokeKey(apiKey, onClose);
  return (
    <ConfirmDialog
      title={`Revoke ${oneLine(apiKey.name)}`}
      action="Revoke key"
      danger
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => {
        revoke.mutate();
      }}
      onClose={onClose}
    >
      <p>
        Requests with <code>{apiKey.key_prefix}…</code> are rejected within a second. This cannot be undone.
      </p>
    </ConfirmDialog>
  );
}
