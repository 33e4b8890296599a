// The dialog that creates a grant: a member, a resource, permissions and the last day.
import { type ReactElement, useState } from 'react';
import { useSession } from '../../client/session.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Field, Input, Select } from '../../ui/field.tsx';
import costs from '../costs/costs.module.css';
import { type Grant, type GrantType, TYPES, useCreateGrant } from './grant_api.ts';
import { useActiveMembers } from './member_api.ts';
import { ConfirmDialog } from './parts.tsx';
import styles from './settings.module.css';
import { type PermissionItem, usePermissions } from './settings_api.ts';

const DAY_MS = 86_400_000;
const DAYS_DEFAULT = 7;
const ID_CHARS_MAX = 128;
const dateIn = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);

type Permission = Grant['permissions'][number];

interface GrantDialogProps {
  resource: { type: GrantType; id: string };
  onClose: () => void;
}

/** The dialog. */
export function GrantDialog({ resource, onClose }: GrantDialogProps): ReactElement {
  const [draft, setDraft] = useState<Draft>({ ...resource, user_id: '', until: dateIn(DAYS_DEFAULT) });
  const [chosen, setChosen] = useState<ReadonlySet<string> | null>(null);
  const offered = usePermissions().data?.filter(({ grantable_on }) => grantable_on.includes(draft.type)) ?? [];
  // A new choice of the type begins with the first permission, which reads.
  const held = chosen ?? new Set(offered.slice(0, 1).map(({ permission }) => permission));
  const create = useCreateGrant(onClose);
  return (
    <ConfirmDialog
      title="Create a grant"
      action="Create grant"
      disabled={draft.user_id === '' || draft.id.trim() === '' || draft.until === '' || held.size === 0}
      busy={create.isPending}
      error={create.error}
      onConfirm={() => {
        create.mutate({
          user_id: draft.user_id,
          resource: { type: draft.type, id: draft.id.trim() },
          permissions: offered.map(({ permission }) => permission as Permission).filter((one) => held.has(one)),
          expires_at: new Date(Date.parse(`${draft.until}T00:00:00Z`) + DAY_MS).toISOString(),
        });
      }}
      onClose={onClose}
    >
      <ResourceFields
        draft={draft}
        onChange={(patch) => {
          if (patch.type !== undefined) setChosen(null);
          setDraft({ ...draft, ...patch });
        }}
      />
      <PermissionFields offered={offered} held={held} onHeld={setChosen} />
    </ConfirmDialog>
  );
}

interface Draft {
  type: GrantType;
  id: string;
  user_id: string;
  until: string;
}

interface ResourceFieldsProps {
  draft: Draft;
  onChange: (patch: Partial<Draft>) => void;
}

function ResourceFields({ draft, onChange }: ResourceFieldsProps): ReactElement {
  const me = useSession().data?.user_id;
  const members = (useActiveMembers().data?.members ?? []).filter(({ user_id }) => user_id !== me);
  const text = (name: 'id' | 'user_id' | 'until') => ({
    value: draft[name],
    onChange: ({ target }: { target: { value: string } }) => {
      onChange({ [name]: target.value });
    },
  });
  return (
    <>
      <Field label="Member" hint={members.length === 0 ? 'There is no other active member' : undefined}>
        {(control) => (
          <Select {...control} ref={(field) => field?.setAttribute('autofocus', '')} {...text('user_id')}>
            <option value="">Choose a member</option>
            {members.map(({ user_id, email, role }) => (
              <option key={user_id} value={user_id}>
                {oneLine(email)} ({role})
              </option>
            ))}
          </Select>
        )}
      </Field>
      <div className={costs.columns}>
        <Field label="Resource">
          {(control) => (
            <Select
              {...control}
              value={draft.type}
              onChange={({ target }) => {
                onChange({ type: TYPES.find((one) => one === target.value) ?? 'trace' });
              }}
            >
              {TYPES.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="Id of the resource">
          {(control) => <Input {...control} required maxLength={ID_CHARS_MAX} {...text('id')} />}
        </Field>
        <Field label="Last day" hint="UTC, included">
          {(control) => <Input {...control} type="date" required min={dateIn(0)} {...text('until')} />}
        </Field>
      </div>
    </>
  );
}

interface PermissionFieldsProps {
  offered: readonly PermissionItem[];
  held: ReadonlySet<string>;
  onHeld: (held: ReadonlySet<string>) => void;
}

function PermissionFields({ offered, held, onHeld }: PermissionFieldsProps): ReactElement {
  return (
    <fieldset className={styles.group}>
      <legend>Permissions</legend>
      {offered.map(({ permission, description }) => (
        <label key={permission} className={costs.check}>
          <input
            type="checkbox"
            checked={held.has(permission)}
            onChange={({ target }) => {
              const next = new Set(held);
              if (target.checked) next.add(permission);
              else next.delete(permission);
              onHeld(next);
            }}
          />
          <span>
            <code>{permission}</code> <span className={costs.small}>{description}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
