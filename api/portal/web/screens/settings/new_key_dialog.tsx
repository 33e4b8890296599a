// The dialog that creates an API key: name, scopes by preset or one by one, and limits.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Field, Input } from '../../ui/field.tsx';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import { Chip } from '../../ui/chip.tsx';
import costs from '../costs/costs.module.css';
import { KeyLimitFields } from '../costs/key_dialog.tsx';
import { draftOf, type KeyDraft, limitsOf } from '../costs/key_draft.ts';
import { useCreateKey } from './key_changes.ts';
import { presetOf, PRESETS, type Scope, scopeGroups } from './key_scopes.ts';
import { ConfirmDialog } from './parts.tsx';
import styles from './settings.module.css';
import { usePermissions } from './settings_api.ts';

const NAME_CHARS_MAX = 200;
const NO_LIMITS = {
  models: null,
  requests_per_minute: null,
  tokens_per_minute: null,
  budget: null,
  expires_at: null,
  labels: null,
  capture: 'full',
} as const;

/** The dialog. */
export function NewKeyDialog({ onClose }: { onClose: () => void }): ReactElement {
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set(PRESETS[0].scopes));
  const [draft, setDraft] = useState<KeyDraft>(() => draftOf(NO_LIMITS));
  const create = useCreateKey();
  const limits = limitsOf(draft, NO_LIMITS);
  if (create.data !== undefined)
    return (
      <SecretDialog
        title={`Key of ${oneLine(create.data.name)}`}
        noun="key"
        secret={create.data.raw_key}
        onClose={onClose}
      >
        <p>The key is shown now and not again. Store it where the program reads it.</p>
      </SecretDialog>
    );
  return (
    <ConfirmDialog
      title="Create an API key"
      action="Create key"
      form="wide"
      disabled={name.trim() === '' || scopes.size === 0 || 'wrong' in limits}
      busy={create.isPending}
      error={create.error}
      onConfirm={() => {
        if (!('wrong' in limits)) create.mutate({ name: name.trim(), scopes: [...scopes], ...limits });
      }}
      onClose={onClose}
    >
      <Field label="Name" hint="Names the program that uses the key, for example checkout-service">
        {(control) => (
          <Input
            {...control}
            ref={(field) => field?.setAttribute('autofocus', '')}
            required
            maxLength={NAME_CHARS_MAX}
            value={name}
            onChange={({ target }) => {
              setName(target.value);
            }}
          />
        )}
      </Field>
      <ScopeFields scopes={scopes} onScopes={setScopes} />
      <details>
        <summary>Limits, expiry and labels</summary>
        <KeyLimitFields
          draft={draft}
          wrong={'wrong' in limits ? limits.wrong : null}
          error={null}
          onChange={(patch) => {
            setDraft({ ...draft, ...patch });
          }}
        />
      </details>
    </ConfirmDialog>
  );
}

interface ScopeFieldsProps {
  scopes: ReadonlySet<Scope>;
  onScopes: (scopes: ReadonlySet<Scope>) => void;
}

function ScopeFields({ scopes, onScopes }: ScopeFieldsProps): ReactElement {
  const { can } = useOrganization();
  const permissions = usePermissions();
  const groups = scopeGroups(permissions.data ?? [], can);
  const preset = presetOf(scopes);
  return (
    <>
      <div className={costs.line} role="group" aria-label="Presets of scopes">
        {PRESETS.map(({ id, label, scopes: of }) => (
          <Chip
            key={id}
            pressed={preset?.id === id}
            onToggle={() => {
              onScopes(new Set(of));
            }}
          >
            {label}
          </Chip>
        ))}
        <span className={costs.small}>{preset?.words ?? 'Scopes of your own choice'}</span>
      </div>
      <div className={costs.columns}>
        {groups.map(({ title, scopes: offered }) => (
          <fieldset key={title} className={styles.group}>
            <legend>{title}</legend>
            {offered.map(({ scope, words }) => (
              <label key={scope} className={costs.check}>
                <input
                  type="checkbox"
                  checked={scopes.has(scope)}
                  onChange={({ target }) => {
                    const next = new Set(scopes);
                    if (target.checked) next.add(scope);
                    else next.delete(scope);
                    onScopes(next);
                  }}
                />
                <span>
                  <code>{scope}</code> <span className={costs.small}>{words}</span>
                </span>
              </label>
            ))}
          </fieldset>
        ))}
      </div>
    </>
  );
}
