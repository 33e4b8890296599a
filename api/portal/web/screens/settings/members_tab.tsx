// Members and open invites, with their roles, and the transfer of ownership.
import { type ReactElement, useState } from 'react';
import { useOrganization, useSession } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { Select } from '../../ui/field.tsx';
import { Menu, type MenuItem } from '../../ui/menu.tsx';
import { Moment } from '../../ui/moment.tsx';
import numbers from '../../ui/number_table.module.css';
import { useSearchState } from '../../url/use_search_state.ts';
import costs from '../costs/costs.module.css';
import { type Member, membersUrl, PAGE, ROLES, useActiveMembers, useMembers } from './member_api.ts';
import { InviteDialog, RemoveDialog, RoleDialog } from './member_dialogs.tsx';
import { Ownership } from './ownership.tsx';
import { Loaded, Pager, Section } from './parts.tsx';
import styles from './settings.module.css';

type Open = 'invite' | { change: Member } | { remove: Member } | null;

/** The tab. */
export default function MembersTab(): ReactElement {
  const { org_id, can } = useOrganization();
  const [filter, change] = useSearchState(membersUrl);
  const list = useMembers(filter);
  const [open, setOpen] = useState<Open>(null);
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/members?limit=${PAGE}`);
  const mayInvite = can('members:invite');
  const close = (): void => {
    setOpen(null);
  };
  return (
    <div className={costs.tab}>
      <Section
        title="Members"
        change={{
          permission: 'members:invite',
          words: 'invite',
          also: { permission: 'members:role', words: 'change roles and remove members' },
          actions: ['member.invite', 'member.role_change', 'member.remove'],
        }}
        actions={
          mayInvite && (
            <InviteButton
              onInvite={() => {
                setOpen('invite');
              }}
            />
          )
        }
      >
        <Filters
          filter={filter}
          onChange={(patch) => {
            change({ ...patch, offset: null });
          }}
        />
        <Loaded query={list} what="the members">
          {({ members, total }) => (
            <>
              <MemberTable members={members} onOpen={setOpen} />
              <Pager
                total={total}
                offset={filter.offset ?? 0}
                limit={PAGE}
                onOffset={(offset) => {
                  change({ offset });
                }}
              />
            </>
          )}
        </Loaded>
      </Section>
      <Ownership />
      {open === 'invite' && <InviteDialog onClose={close} />}
      {open !== null && open !== 'invite' && 'change' in open && <RoleDialog member={open.change} onClose={close} />}
      {open !== null && open !== 'invite' && 'remove' in open && <RemoveDialog member={open.remove} onClose={close} />}
    </div>
  );
}

function InviteButton({ onInvite }: { onInvite: () => void }): ReactElement {
  useKeys('Members', [{ keys: 'i', label: 'Invite a member', run: onInvite }]);
  return (
    <Button look="primary" icon="plus" keys="i" onClick={onInvite}>
      Invite member
    </Button>
  );
}

type Filter = ReturnType<typeof membersUrl.parse>;

function Filters({ filter, onChange }: { filter: Filter; onChange: (patch: Partial<Filter>) => void }): ReactElement {
  return (
    <div className={styles.filters}>
      <Select
        aria-label="Role"
        value={filter.role ?? ''}
        onChange={({ target }) => {
          onChange({ role: ROLES.find((role) => role === target.value) ?? null });
        }}
      >
        <option value="">Every role</option>
        {ROLES.map((role) => (
          <option key={role} value={role}>
            {role}
          </option>
        ))}
      </Select>
      <Select
        aria-label="Status"
        value={filter.status ?? ''}
        onChange={({ target }) => {
          onChange({ status: target.value === 'active' || target.value === 'invited' ? target.value : null });
        }}
      >
        <option value="">Members and invites</option>
        <option value="active">Members</option>
        <option value="invited">Open invites</option>
      </Select>
    </div>
  );
}

function MemberTable({ members, onOpen }: { members: readonly Member[]; onOpen: (open: Open) => void }): ReactElement {
  const { can } = useOrganization();
  const me = useSession().data?.user_id;
  const owners = useActiveMembers('owner');
  const isLastOwner = ({ role, status }: Member): boolean =>
    role === 'owner' && status === 'active' && owners.data?.total === 1;
  const acts = can('members:role') || can('members:remove');
  if (members.length === 0) return <p className={costs.note}>No member matches these filters.</p>;
  return (
    <div className={numbers.scroll} role="region" aria-label="Members and invites" tabIndex={0}>
      <table className={numbers.table}>
        <thead>
          <tr>
            <th scope="col">Member</th>
            <th scope="col" className={numbers.words}>
              Role
            </th>
            <th scope="col" className={numbers.words}>
              Status
            </th>
            <th scope="col">Since</th>
            {acts && <th scope="col">Change</th>}
          </tr>
        </thead>
        <tbody>
          {members.map((member) => (
            <tr key={member.user_id}>
              <th scope="row" className={costs.name}>
                {oneLine(member.email)}
                {member.user_id === me && ' (you)'}{' '}
                {member.status === 'active' && <span className={costs.small}>{oneLine(member.user_id)}</span>}
              </th>
              <td className={numbers.words}>
                {member.role} {isLastOwner(member) && <Chip tone="accent">Last owner</Chip>}
              </td>
              <td className={numbers.words}>{member.status === 'active' ? 'Active' : 'Invited'}</td>
              <td>
                <Moment at={member.joined_at ?? member.invited_at} form="ago" />
              </td>
              {acts && (
                <td>
                  <MemberMenu member={member} isLastOwner={isLastOwner(member)} onOpen={onOpen} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface MemberMenuProps {
  member: Member;
  isLastOwner: boolean;
  onOpen: (open: Open) => void;
}

function MemberMenu({ member, isLastOwner, onOpen }: MemberMenuProps): ReactElement {
  const { can } = useOrganization();
  if (isLastOwner) return <span className={costs.small}>Cannot be demoted or removed</span>;
  const items: MenuItem[] = [];
  if (can('members:role'))
    items.push({
      label: 'Change role',
      onSelect: () => {
        onOpen({ change: member });
      },
    });
  if (can('members:remove'))
    items.push({
      label: member.status === 'invited' ? 'Withdraw invite' : 'Remove member',
      danger: true,
      onSelect: () => {
        onOpen({ remove: member });
      },
    });
  return <Menu look="quiet" align="end" icon="more" label={`Change ${oneLine(member.email)}`} items={items} />;
}
