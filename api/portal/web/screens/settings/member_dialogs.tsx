// The dialogs that invite a member, change a role and remove a member or an invite.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Field, Input, Select } from '../../ui/field.tsx';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import { type Member, ROLES, useChangeRole, useInvite, useRemove } from './member_api.ts';
import { ConfirmDialog } from './parts.tsx';
import { type Role, usePermissions } from './settings_api.ts';

/** What each role may do, in one line. */
const ROLE_WORDS: Readonly<Record<Role, string>> = {
  viewer: 'Reads agents and the settings of the organization',
  member: 'Reads all telemetry, annotates, and changes datasets, prompts and agents',
  admin: 'Also changes judges, budgets, webhooks and API keys, invites members, and reads the audit log',
  owner: 'Also changes roles, the policy, retention and grants, erases data, and transfers the ownership',
};

/** Returns the roles to which the person may invite: those whose every permission the person has. */
function useAssignable(): readonly Role[] {
  const { can } = useOrganization();
  const permissions = usePermissions();
  return ROLES.filter((role) =>
    (permissions.data ?? []).every(({ permission, roles }) => !roles.includes(role) || can(permission)),
  );
}

interface RoleFieldProps {
  roles: readonly Role[];
  role: Role;
  onRole: (role: Role) => void;
}

function RoleField({ roles, role, onRole }: RoleFieldProps): ReactElement {
  return (
    <Field label="Role" hint={ROLE_WORDS[role]}>
      {(control) => (
        <Select
          {...control}
          value={role}
          onChange={({ target }) => {
            onRole(roles.find((one) => one === target.value) ?? role);
          }}
        >
          {roles.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

/** Invites by e-mail. Where the service sends no mail, the token of the invite is shown once. */
export function InviteDialog({ onClose }: { onClose: () => void }): ReactElement {
  const { org_id } = useOrganization();
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<Role>('member');
  const [made, setMade] = useState<{ email: string; token: string } | null>(null);
  const roles = useAssignable();
  const invite = useInvite(({ email: invited, token }) => {
    if (token === null) onClose();
    else setMade({ email: invited, token });
  });
  if (made !== null)
    return (
      <SecretDialog
        title={`Invite of ${oneLine(made.email)}`}
        noun="link"
        secret={`${location.origin}/invite#${org_id}.${made.token}`}
        onClose={onClose}
      >
        <p>
          The service may send no mail in development, so hand this link to the person. It can be accepted within 24
          hours by somebody who is logged in with this address, and it is not shown again.
        </p>
      </SecretDialog>
    );
  return (
    <ConfirmDialog
      title="Invite a member"
      action="Send invite"
      disabled={email.trim() === ''}
      busy={invite.isPending}
      error={invite.error}
      onConfirm={() => {
        invite.mutate({ email: email.trim(), role });
      }}
      onClose={onClose}
    >
      <Field label="E-mail" hint="The person accepts within 24 hours, logged in with this address">
        {(control) => (
          <Input
            {...control}
            ref={(field) => field?.setAttribute('autofocus', '')}
            type="email"
            required
            value={email}
            onChange={({ target }) => {
              setEmail(target.value);
            }}
          />
        )}
      </Field>
      <RoleField roles={roles} role={role} onRole={setRole} />
    </ConfirmDialog>
  );
}

interface MemberDialogProps {
  member: Member;
  onClose: () => void;
}

export function RoleDialog({ member, onClose }: MemberDialogProps): ReactElement {
  const [role, setRole] = useState<Role>(member.role);
  const save = useChangeRole(member, onClose);
  return (
    <ConfirmDialog
      title={`Role of ${oneLine(member.email)}`}
      action={role === member.role ? 'Change role' : `Make ${role}`}
      disabled={role === member.role}
      busy={save.isPending}
      error={save.error}
      onConfirm={() => {
        save.mutate(role);
      }}
      onClose={onClose}
    >
      <RoleField roles={ROLES} role={role} onRole={setRole} />
      <p>API keys of this member keep at most the permissions of the new role, within a second.</p>
    </ConfirmDialog>
  );
}

export function RemoveDialog({ member, onClose }: MemberDialogProps): ReactElement {
  const remove = useRemove(member, onClose);
  const isInvite = member.status === 'invited';
  return (
    <ConfirmDialog
      title={isInvite ? `Withdraw the invite of ${oneLine(member.email)}` : `Remove ${oneLine(member.email)}`}
      action={isInvite ? 'Withdraw invite' : 'Remove member'}
      danger
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() => {
        remove.mutate();
      }}
      onClose={onClose}
    >
      <p>
        {isInvite
          ? 'The token of the mail can no longer be accepted.'
          : 'The sessions and API keys of this member stop within a second, and grants to this member end. A person who is invited again starts without them.'}
      </p>
    </ConfirmDialog>
  );
}
